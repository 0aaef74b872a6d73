"""Never load a tile that the mask empties.

    for (q tile, k tile): body   =   for (q tile, k tile) with a kept pair: body

Precondition  every Einsum that pairs q with k or reduces over k runs over kept pairs only; what carries both q and k leaves the
              kernel only for Einsums over kept pairs; the ends of what queries see rise, or a tile has one query.
Proof         a tile without a kept pair adds no point to any reduction: (max of nothing, sum of nothing) is the unit; and what
              is not written of a tile, nobody reads.
Effect        key tiles met fall from T_r T_c to those that a kept pair touches: T (T + 1)/2 for a causal square.
Reference     Dao 2023, arXiv:2307.08691, section 3.1 (causal masking).
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Einsum, Map, Reduce, Tensor
from derive.graph import Graph
from derive.masks import Pattern
from derive.notation import cascade
from derive.places import Places, places
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Schedule
from derive.symbols import N_k, N_q, b
from rules.schedule.examples import flash, fused, loop, streaming


def shape(schedule: Schedule) -> Iterator[Kernel]:
    """Kernels that tile both indices of a mask and do not skip yet."""
    for kernel in schedule.kernels:
        mask = schedule.mask_of(kernel)
        if mask is None:
            continue
        tiled = kernel.loop_of(mask.row) is not None and kernel.loop_of(mask.column) is not None
        if tiled and not kernel.skips_masked:
            yield kernel


def rewrite(schedule: Schedule, kernel: Kernel) -> Schedule:
    """Mark the kernel."""
    return schedule.replace((kernel,), kernel.with_(skips_masked=True))


def _only_kept_pairs(schedule: Schedule, kernel: Kernel) -> bool:
    mask = schedule.mask_of(kernel)
    if mask is None:
        return True
    for e in schedule.nodes(kernel):
        names = {i.name for i in e.space}
        pairs = mask.column in names and (mask.row in names or mask.column in {i.name for i in e.reduced})
        if pairs and e.domain != mask:
            return False
    return True


def _nothing_left_unwritten(schedule: Schedule, kernel: Kernel) -> bool:
    mask = schedule.mask_of(kernel)
    return mask is None or all(
        t.name not in schedule.graph.outputs and all(e.domain == mask for e in schedule.graph.readers[t.name])
        for t in schedule.outputs_of(kernel)
        if {mask.row, mask.column} <= {i.name for i in t.indices}
    )


def _first_and_last_row_tell(schedule: Schedule, kernel: Kernel) -> bool:
    mask = schedule.mask_of(kernel)
    if not isinstance(mask, Places) or mask.rises:
        return True
    rows = kernel.loop_of(mask.row)
    return rows is not None and rows.tile == 1 and len(rows.indices) == 1


def _in_chunks() -> Schedule:
    """Row sums over the places of keys that are selected in chunks, where a query begins again at one; several in a tile."""
    text = "E[q,k] = exp(S[q,k])\nl[q] = sum[k] E[q,k]"
    keys = Pattern("chunk").mask(N_q, N_k, column="j")
    assert keys is not None
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("l",), width=b, mask=places(keys, "k", N_k))
    return fused(graph, loop(graph, "q", grid=True), loop(graph, "k"))


def _causal(*, unmasked_sum: bool = False, scores_leave: bool = False) -> Schedule:
    """Causal attention in one kernel; the flags break one clause each."""
    graph = streaming("causal")
    if unmasked_sum:
        values = graph.tensors["V"]
        total = Tensor("V_sum", (*values.indices[:2], graph.indices["q"], values.indices[-1]), values.width)
        weight = Tensor("W", (*values.indices[:2], graph.indices["q"], values.indices[2]), values.width)
        extra = Einsum(total, (weight, values), Map.MUL, Reduce.SUM)
        graph = Graph((extra, *graph.einsums), (*graph.outputs, "V_sum"))
    if scores_leave:
        graph = Graph(graph.einsums, ("S", *graph.outputs))
    grid = (loop(graph, name, grid=True) for name in ("b", "h", "q"))
    return fused(graph, *grid, loop(graph, "k"))


RULE: Rule[Schedule] = Rule(
    name="skip-masked-tiles",
    claim="tiles without a kept pair are not loaded",
    reference="arXiv:2307.08691, section 3.1",
    shape=shape,
    preconditions=(
        Precondition(
            says="every Einsum that pairs q with k or reduces over k runs over kept pairs only",
            holds=_only_kept_pairs,
            counterexample=lambda: _causal(unmasked_sum=True),
        ),
        Precondition(
            says="what carries both q and k leaves the kernel only for Einsums over kept pairs",
            holds=_nothing_left_unwritten,
            counterexample=lambda: _causal(scores_leave=True),
        ),
        Precondition(
            says="the first and the last query of a tile tell what it meets: what queries see rises, or a tile has one of them",
            holds=_first_and_last_row_tell,
            counterexample=_in_chunks,
        ),
    ),
    rewrite=rewrite,
    example=lambda: flash("causal"),
)

"""Put the query heads that share a KV head, or the sequences that share a prefix, into one tile.

    grid r: grid q tile: body   =   grid (q, r) tile: body      rows of B_r query-head pairs, heads fastest

Precondition  every tensor that carries the head carries the query too, and the other way round.
Proof         a row of scores belongs to one (query, head) pair; which rows share a tile changes no row.
Effect        K and V are read once for ceil(N_q r / B_r) tiles instead of r ceil(N_q / B_r): in decode, once a KV head.
Reference     Shah et al. 2024, arXiv:2407.08608 (GQA packing in the released kernels); Ainslie et al. 2023, arXiv:2305.13245.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.einsum import Einsum, Map, Tensor
from derive.graph import Graph
from derive.page_tables import tables
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import b
from rules.schedule.examples import flash, fused, loop, streaming

Match = tuple[Kernel, Loop, Loop]


def shape(schedule: Schedule) -> Iterator[Match]:
    """A grid loop over a head, or over sequences, that some operand lacks, and the grid loop over query tiles.

    A table of pages is no operand: to share its few entries is not worth a tile.
    """
    for kernel in schedule.kernels:
        rows = kernel.loop_of("q")
        if rows is None or not rows.grid:
            continue
        tabled = tables(schedule.nodes(kernel))
        inputs = [t for t in schedule.staged_of(kernel) if t.name not in tabled]
        for heads in kernel.grid:
            shares = any(not heads.carried_by(t) and not rows.carried_by(t) for t in inputs)
            if heads is not rows and len(heads.indices) == 1 and heads.tile == 1 and shares:
                yield kernel, heads, rows


def _shape_of_groups(schedule: Schedule) -> Iterator[Match]:
    """The same for the innermost such loop of a kernel alone, as long as nothing is packed: the heads of a group."""
    found = {kernel: (kernel, heads, rows) for kernel, heads, rows in shape(schedule) if len(rows.indices) == 1}
    yield from found.values()  # the last of a kernel is its innermost


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """One loop over (query, head) rows."""
    kernel, heads, rows = match
    packed = Loop((*rows.indices, *heads.indices), rows.tile, grid=True)
    loops = tuple(packed if x is rows else x for x in kernel.loops if x is not heads)
    return schedule.replace((kernel,), kernel.with_(loops=loops))


def _carried_together(schedule: Schedule, match: Match) -> bool:
    kernel, heads, rows = match
    return all(heads.carried_by(t) == rows.carried_by(t) for t in schedule.tensors_of(kernel))


def _grouped(*, head_scale: bool = False) -> Schedule:
    """Grouped-query attention; with a scale per head, which carries the head and no query."""
    if not head_scale:
        return flash(grouped=True)
    graph = streaming(grouped=True)
    scores, result = graph.einsums[0], graph.einsums[0].output
    scale = Tensor("a", tuple(i for i in result.indices if i.name in ("b", "g", "r")), b)
    scaled = Einsum(Tensor("Q0", result.indices, b), (scores.inputs[0], scale), Map.MUL)
    first = Einsum(result, (scaled.output, scores.inputs[1]), scores.map)
    graph = Graph((scaled, first, *graph.einsums[1:]), graph.outputs)
    grid = (loop(graph, name, grid=True) for name in ("b", "g", "r", "q"))
    return fused(graph, *grid, loop(graph, "k"))


RULE: Rule[Schedule] = Rule(
    name="pack-heads",
    claim="the query heads that share a KV head fill one tile, so K and V are read once for all of them",
    reference="arXiv:2407.08608; arXiv:2305.13245",
    shape=shape,
    preconditions=(
        Precondition(
            says="every tensor that carries the head carries the query too, and the other way round",
            holds=_carried_together,
            counterexample=lambda: _grouped(head_scale=True),
        ),
    ),
    rewrite=rewrite,
    example=_grouped,
)
GROUP: Rule[Schedule] = replace(RULE, name="pack-group", shape=_shape_of_groups)
"""Where several loops may be packed, such as heads and sequences that share a prefix, the heads of a group alone."""
RULES = (RULE, GROUP)

r"""Run each part of the keys in one kernel up to its partial results, and what merges them in another.

    kernels E, l_s, U_s | m, l, U, O   =   kernel E..U_s: all within a part;   kernel m..O: all that waits for several

Precondition  no kernel of the run has loops yet; what the run reads from other kernels is made before it.
Proof         the merged kernel stands where its first one stood and runs the same Einsums in the same order; nothing in it
              waits for a kernel that it has moved past.
Effect        what passes between the Einsums of a part stays on chip; only the partial results cross memory, once each way.
Reference     Dao et al. 2023, Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html (split kernel and reduction).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from derive.einsum import Index, Tensor
from derive.graph import Graph
from derive.notation import cascade
from derive.rewrite import Precondition
from derive.schedule import Kernel, Schedule, lift
from derive.symbols import N_k, N_q, b, d, n_s
from rules.schedule.fuse import Match, fusion


def shape(schedule: Schedule) -> Iterator[Match]:
    """The kernels within a part, then those that wait for several parts, where either are more than one."""
    yield from (run for run in _inside_and_after(schedule) if len(run) > 1)


def _merges(schedule: Schedule) -> Iterator[Match]:
    """The kernels that wait for several parts, where they are more than one."""
    _, after = _inside_and_after(schedule)
    if len(after) > 1:
        yield after


def _inside_and_after(schedule: Schedule) -> tuple[Match, Match]:
    waiting = waits_for_parts(schedule.graph)
    inside, after = [], []
    for kernel in schedule.kernels:
        nodes = schedule.nodes(kernel)
        if all(e.output.name in waiting for e in nodes):
            after.append(kernel)
        elif all(any(i.part_of for i in e.output.indices) and e.output.name not in waiting for e in nodes):
            inside.append(kernel)
    return tuple(inside), tuple(after)


def waits_for_parts(graph: Graph) -> set[str]:
    """What reduces over parts, not at once over all that they are parts of, and whatever reads it, at any remove."""
    found: set[str] = set()
    for e in graph.einsums:
        reduced = {i.name for i in e.reduced}
        alone = any(i.part_of and i.part_of not in reduced for i in e.reduced)
        if alone or any(t.name in found for t in e.inputs):
            found.add(e.output.name)
    return found


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """One kernel where the first of the run stood."""
    names = tuple(name for kernel in match for name in kernel.einsums)
    return schedule.replace(match, Kernel(names))


def _reads_what_is_made(schedule: Schedule, match: Match) -> bool:
    first = schedule.kernels.index(match[0])
    made = {name for kernel in (*schedule.kernels[:first], *match) for name in kernel.einsums}
    read = {t.name for kernel in match for t in schedule.inputs_of(kernel)}
    return not any(name in schedule.graph.producers and name not in made for name in read)


def made_before(late: Callable[[], Graph]) -> Precondition[Schedule]:
    """The clause that what the run reads is an input, its own, or made before its first kernel; *late* breaks it."""
    return Precondition(
        says="what the run reads from other kernels is made before it",
        holds=_reads_what_is_made,
        counterexample=lambda: lift(late()),
    )


def _graph(*, late: bool = False) -> Graph:
    """Sums of exponentials by part, then in all; late, a factor that has no parts is made between two that have."""
    text = """
        E[s,q,k] = exp(S[q,s,k])
        l_s[s,q] = sum[k] E[s,q,k]
        l[q]     = sum[s] l_s[s,q]
    """
    if late:
        text = """
            E[s,q,k] = exp(S[q,s,k])
            f[q]     = exp(y[q])
            F[s,q,k] = E[s,q,k] * f[q]
            l_s[s,q] = sum[k] F[s,q,k]
            l[q]     = sum[s] l_s[s,q]
        """
    graph = cascade(text, {"s": n_s, "q": N_q, "k": N_k / n_s}, outputs=("l",), width=b)
    return with_parts(graph, "s", "k")


def _scaled(*, late: bool = False) -> Graph:
    """A sum over parts, then scaled; late, by a factor that is made between the two."""
    text = """
        A[q,d] = sum[s] A_s[s,q,d]
        f[q]   = exp(y[q])
        Z[q,d] = A[q,d] * f[q]
    """
    if not late:
        text = """
            A[q,d] = sum[s] A_s[s,q,d]
            Z[q,d] = A[q,d] * c
        """
    return with_parts(cascade(text, {"s": n_s, "q": N_q, "d": d}, outputs=("Z",), width=b), "s", "k")


def with_parts(graph: Graph, part: str, whole: str) -> Graph:
    """*graph* with the index *part* known as the one that says which part of *whole*."""
    marked = Index(part, graph.indices[part].extent, part_of=whole)

    def mark(tensor: Tensor) -> Tensor:
        return replace(tensor, indices=tuple(marked if i.name == part else i for i in tensor.indices))

    einsums = (replace(e, output=mark(e.output), inputs=tuple(map(mark, e.inputs))) for e in graph.einsums)
    return replace(graph, einsums=tuple(einsums))


RULE = fusion(
    "fuse-parts",
    "each part of the keys runs in one kernel up to its partial results, and what merges them in another",
    shape,
    _graph,
    ("E",),
    made_before(lambda: _graph(late=True)),
    rewrite=rewrite,
    reference="Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html",
)
MERGES = fusion(
    "fuse-merges",
    "what merges the parts of the keys runs in one kernel with what waits for it",
    _merges,
    _scaled,
    ("A",),
    made_before(lambda: _scaled(late=True)),
    rewrite=rewrite,
    reference="Dao-AILab/flash-attention, flash_bwd_preprocess_kernel.h (convert_dQ)",
)
RULES = (RULE, MERGES)

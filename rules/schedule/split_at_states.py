"""Compute the states of a recurrence in one kernel, and all that reads them in another.

    one kernel an Einsum   =   kernel 1: what the recurrence needs, and the recurrence;  kernel 2: everything else

Precondition  no kernel has loops yet: merging then changes no order of points.
Proof         what a recurrence needs, at any remove, never needs what it does not: the first kernel is complete in itself.
Effect        the state of every step is written once and read once; in exchange all steps of the second kernel may run at once.
Reference     Yang et al. 2023, arXiv:2312.06635, algorithm 1 (materialised); Dao & Gu 2024, arXiv:2405.21060, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Schedule, lift
from derive.symbols import N_k, N_q, b, d, d_v
from rules.schedule.examples import loop

Match = tuple[tuple[str, ...], tuple[str, ...]]


def shape(schedule: Schedule) -> Iterator[Match]:
    """What the recurrences need and what they do not, where more kernels than these two hold them."""
    graph = schedule.graph
    needed = {e.output.name for run in graph.recurrences for e in run.einsums}
    for e in reversed(graph.einsums):
        if e.output.name in needed:
            needed |= {t.name for t in e.inputs if t.name in graph.producers}
    names = [e.output.name for e in graph.einsums]
    first, second = tuple(n for n in names if n in needed), tuple(n for n in names if n not in needed)
    if first and second and len(schedule.kernels) > 2:
        yield first, second


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """Two kernels."""
    return Schedule(schedule.graph, tuple(map(Kernel, match)))


def _untiled(schedule: Schedule, match: Match) -> bool:
    return not any(kernel.loops for kernel in schedule.kernels)


def _chunks(*, tiled: bool = False) -> Schedule:
    """Keys and values summed up to each step, and read by a query a step, op by op."""
    text = """
        X[q,d,e] = sum[k] K[q,k,d] * V[q,k,e]
        H[q,d,e] = previous[q] J[q,d,e]
        J[q,d,e] = H[q,d,e] + X[q,d,e]
        O[q,e]   = sum[d] Q[q,d] * H[q,d,e]
    """
    schedule = lift(cascade(text, {"q": N_q, "k": N_k, "d": d, "e": d_v}, outputs=("O",), width=b))
    if not tiled:
        return schedule
    kernel = schedule.kernel_of["O"]
    return schedule.replace((kernel,), Kernel(kernel.einsums, (loop(schedule.graph, "q"),)))


RULE: Rule[Schedule] = Rule(
    name="split-at-states",
    claim="one kernel writes the state of every step, another reads them",
    reference="arXiv:2312.06635, algorithm 1; arXiv:2405.21060, section 6",
    shape=shape,
    preconditions=(
        Precondition(
            says="no kernel has loops yet, so merging changes no order of points",
            holds=_untiled,
            counterexample=lambda: _chunks(tiled=True),
        ),
    ),
    rewrite=rewrite,
    example=_chunks,
)

"""Give each sequence to a CTA of its own, and each step of it where no recurrence runs along the steps.

    for b, h, n: body   =   grid b, h: for n: body   where a state goes from n to n + 1,   grid b, h, n: body   elsewhere

Precondition  every Einsum of the kernel carries these indices, so that no two CTAs meet in one result.
Proof         a recurrence hands its state on along one index alone: over any other one, trips commute.
Effect        as many CTAs as there are heads and sequences; times the steps, in a kernel that only reads states.
Reference     Yang et al. 2023, arXiv:2312.06635, algorithm 1 (parallel over sequences, or over chunks too).
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from derive.einsum import Index
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import N_q, b, d, h
from rules.schedule.examples import fused, loop, recurrence
from rules.schedule.launch import parallel_indices

Match = tuple[Kernel, tuple[Index, ...]]


def shape(schedule: Schedule) -> Iterator[Match]:
    """Indices of a kernel's result up to the step that have no loop; the step itself where no recurrence runs along it."""
    steps = {run.index for run in schedule.graph.recurrences}
    for kernel in schedule.kernels:
        nodes = schedule.nodes(kernel)
        indices = nodes[-1].output.indices
        last = next((n for n, i in enumerate(indices) if i.name in steps), None)
        if last is None:
            continue
        in_order = {e.previous for e in nodes}
        found = tuple(i for i in indices[: last + 1] if i.name not in in_order and kernel.loop_of(i.name) is None)
        if found:
            yield kernel, found


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """A grid loop over each, outermost."""
    kernel, indices = match
    loops = tuple(Loop((i,), sp.Integer(1), grid=True) for i in indices)
    return schedule.replace((kernel,), kernel.with_(loops=(*loops, *kernel.loops)))


def _independent(schedule: Schedule, match: Match) -> bool:
    kernel, indices = match
    return set(indices) <= set(parallel_indices(schedule, kernel))


def _mixed() -> Schedule:
    """A running sum a head, less its sum over the heads."""
    text = """
        H[h,q,d] = previous[q] J[h,q,d]
        J[h,q,d] = H[h,q,d] + x[h,q,d]
        m[q,d]   = sum[h] J[h,q,d]
        y[h,q,d] = J[h,q,d] - m[q,d]
    """
    graph = cascade(text, {"h": h, "q": N_q, "d": d}, outputs=("y",), width=b)
    return fused(graph, loop(graph, "q"))


RULE: Rule[Schedule] = Rule(
    name="launch-sequences",
    claim="each sequence, and each step where no state is handed on, is a CTA of its own",
    reference="arXiv:2312.06635, algorithm 1",
    shape=shape,
    preconditions=(
        Precondition(
            says="every Einsum of the kernel carries these indices, so that no two CTAs meet in one result",
            holds=_independent,
            counterexample=_mixed,
        ),
    ),
    rewrite=rewrite,
    example=lambda: fused(recurrence(), loop(recurrence(), "q")),
)

"""Run a kernel along its recurrence, some steps at a time.

    for all n: H[n] = J[n - 1], ...   =   for t in 0..ceil(T/B): for n in steps t: H[n] = J[n - 1], ...    H kept in between

Precondition  the kernel needs no more than one pass over the steps: no step waits for a sum over all of them.
Proof         with one pass, every Einsum at a step needs only what steps up to it have made; the state is all that a step needs
              of those before it.
Effect        a tensor that carries the step needs the steps of one trip in fast memory; the state stays there.
Reference     Yang et al. 2023, arXiv:2312.06635, algorithm 1; Dao & Gu 2024, arXiv:2405.21060, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from derive.graph import Graph
from derive.notation import cascade
from derive.passes import passes
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B_r, N_q, b, d
from rules.schedule.examples import fused, recurrence
from rules.schedule.tile import kernel_graph

Match = tuple[Kernel, str]


def along(schedule: Schedule, kernel: Kernel) -> tuple[str, ...]:
    """The indices of the recurrences that *kernel* runs."""
    runs = (run.index for run in schedule.graph.recurrences if run.einsums[0].output.name in kernel.einsums)
    return tuple(dict.fromkeys(runs))


def shape(schedule: Schedule) -> Iterator[Match]:
    """Kernels that run a recurrence and have no sequential loop yet."""
    for kernel in schedule.kernels:
        if not kernel.sequential:
            yield from ((kernel, index) for index in along(schedule, kernel))


def in_steps(size: sp.Expr, says: str) -> Rule[Schedule]:
    """The rule that runs *size* steps at a time, in words *says*."""

    def rewrite(schedule: Schedule, match: Match) -> Schedule:
        kernel, index = match
        loop = Loop((schedule.graph.indices[index],), size)
        return schedule.replace((kernel,), kernel.with_(loops=(*kernel.loops, loop)))

    return Rule(
        name="run-in-steps",
        claim=f"the recurrence runs {says} at a time, in order, its state kept in between",
        reference="arXiv:2312.06635, algorithm 1; arXiv:2405.21060, section 6",
        shape=shape,
        preconditions=(
            Precondition(
                says="no step waits for a sum over all steps",
                holds=lambda schedule, match: passes(kernel_graph(schedule, match[0]), match[1]) <= 1,
                counterexample=lambda: fused(_shares()),
            ),
        ),
        rewrite=rewrite,
        example=lambda: fused(recurrence()),
        options=str(size),
    )


def _shares() -> Graph:
    """A running sum, and each step's share of all steps together."""
    text = """
        H[q,d] = previous[q] J[q,d]
        J[q,d] = H[q,d] + x[q,d]
        l[d]   = sum[q] J[q,d]
        y[q,d] = J[q,d] / l[d]
    """
    return cascade(text, {"q": N_q, "d": d}, outputs=("y",), width=b)


ONE = in_steps(sp.Integer(1), "one step")
ROWS = in_steps(B_r, f"{B_r} steps")
RULES = (ONE, ROWS)

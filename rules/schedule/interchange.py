"""Order the loops of a kernel.

    for a: for c: body   =   for c: for a: body

Precondition  both loops are sequential, or both are on the grid.
Proof         after tiling, the trips of both loops commute: sums and maxima are associative and commutative, and a partial
              result that is not at hand is written to memory and read back.
Effect        which tensors stay and which are read again: with k outside, K and V are read once, and Q and the partial
              results once a key tile; with q outside, the other way round.
Reference     Dao 2023, arXiv:2307.08691, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from rules.schedule.examples import flash, fused, loop, streaming

Match = tuple[Kernel, Loop, Loop]


def outside(inner: str, outer: str, *, example: Callable[[], Schedule]) -> Rule[Schedule]:
    """The rule that moves the loop over *inner* just outside the loop over *outer*."""

    def shape(schedule: Schedule) -> Iterator[Match]:
        for kernel in schedule.kernels:
            moved, target = kernel.loop_of(inner), kernel.loop_of(outer)
            if moved is None or target is None or moved is target:
                continue
            if kernel.loops.index(moved) > kernel.loops.index(target):
                yield kernel, moved, target

    def rewrite(schedule: Schedule, match: Match) -> Schedule:
        kernel, moved, target = match
        loops = [x for x in kernel.loops if x is not moved]
        loops.insert(loops.index(target), moved)
        return schedule.replace((kernel,), kernel.with_(loops=tuple(loops)))

    def alike(schedule: Schedule, match: Match) -> bool:
        _, moved, target = match
        return moved.grid == target.grid

    return Rule(
        name="interchange",
        claim=f"the loop over {inner} stands outside the loop over {outer}",
        reference="arXiv:2307.08691, section 3.2",
        shape=shape,
        preconditions=(
            Precondition(
                says="both loops are sequential or both are on the grid",
                holds=alike,
                counterexample=lambda: _mixed(inner, outer),
            ),
        ),
        rewrite=rewrite,
        example=example,
        options=f"{inner} outside {outer}",
    )


def _mixed(inner: str, outer: str) -> Schedule:
    """The loop to move is sequential, the one it should pass is on the grid."""
    graph = streaming()
    return fused(graph, loop(graph, outer, grid=True), loop(graph, inner))


def _sequential() -> Schedule:
    graph = streaming()
    return fused(graph, loop(graph, "q"), loop(graph, "k"))


KEYS_OUTSIDE = outside("k", "q", example=_sequential)
QUERIES_OUTSIDE_HEADS = outside("q", "b", example=flash)
RULES = (KEYS_OUTSIDE, QUERIES_OUTSIDE_HEADS)

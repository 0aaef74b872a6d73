"""The tile walker's account of recurrences: what leaves the SM of a state between two steps, and comes back.

A CTA holds one tile of the state. It stays while the steps go on in it; when another tile of the state, or, for a state that
lives in memory, the next step comes, it is written, and read at its next step. The state before the first step is nothing
that could be read, and the one after the last is nobody's, unless the state lives in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

Coordinates = tuple[int, ...]


class StateMove(NamedTuple):
    """One tile of a state that crosses the boundary of an SM at an iteration."""

    iteration: int
    tile: Coordinates
    is_read: bool


def state_moves(
    iterations: list[Coordinates],
    tile_at: Callable[[Coordinates], Coordinates],
    step_at: Callable[[Coordinates], int],
    last_step: int,
    *,
    in_memory: bool,
) -> Iterator[StateMove]:
    """What moves of a state over the *iterations* of one CTA, in order.

    Args:
        iterations: the innermost iterations that are run.
        tile_at: the tile of the state that an iteration needs.
        step_at: the trip of the recurrence's loop that it belongs to.
        last_step: the number of the last trip.
        in_memory: whether the state lives in memory throughout.
    """
    runs: list[tuple[Coordinates, int, int]] = []
    for number, at in enumerate(iterations):
        new = not runs or tile_at(iterations[number - 1]) != tile_at(at)
        new = new or (in_memory and step_at(iterations[number - 1]) != step_at(at))
        if new:
            runs.append((tile_at(at), number, number))
        else:
            tile, first, _ = runs[-1]
            runs[-1] = (tile, first, number)
    for tile, first, last in runs:
        if in_memory or step_at(iterations[first]) > 0:
            yield StateMove(first, tile, True)
        if in_memory or step_at(iterations[last]) < last_step:
            yield StateMove(last, tile, False)

"""The tile walker's account of recurrences: what leaves the SM of a state between two steps, and comes back.

A CTA holds one tile of the state. It stays while the steps go on in it; when another tile of the state, or, for a state that
lives in memory, the next step comes, it is written, and read at its next step. The state before the first step is nothing
that could be read, and the one after the last is nobody's, unless the state lives in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Coordinates = tuple[int, ...]


def state_moves(
    iterations: list[Coordinates],
    tile_at: Callable[[Coordinates], Coordinates],
    loop: int,
    trips: int,
    in_memory: bool,
) -> Iterator[tuple[int, Coordinates, bool]]:
    """What moves of a state over the *iterations* of one CTA: at which of them, which tile, and whether it is read.

    Args:
        iterations: the innermost iterations that are run.
        tile_at: the tile of the state that an iteration needs.
        loop: the position of the recurrence's loop.
        trips: its trips.
        in_memory: whether the state lives in memory throughout.
    """
    visits: list[tuple[int, int]] = []
    held: tuple[Coordinates, int] | None = None
    for number, at in enumerate(iterations):
        here = tile_at(at), at[loop] if in_memory else 0
        visits[-1:] = [(visits[-1][0], number)] if here == held else [*visits[-1:], (number, number)]
        held = here
    for first, last in visits:
        if in_memory or iterations[first][loop] > 0:
            yield first, tile_at(iterations[first]), True
        if in_memory or iterations[last][loop] < trips - 1:
            yield last, tile_at(iterations[last]), False

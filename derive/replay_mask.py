"""The tile walker's tiles, and which of them a mask leaves: found by looking at every query's keys, one after another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from derive.evaluate import intervals, whole
from derive.mask import Mask
from derive.schedule import Loop

Values = Mapping[str, int | Fraction]
Coordinates = tuple[int, ...]


class Tiles:
    """The tiles of one loop: rows are positions in the flattened indices, the first index slowest."""

    def __init__(self, loop: Loop, extents: Mapping[str, int], values: Values) -> None:
        self.loop = loop
        self.tile = whole(loop.tile, values)
        self.extent = prod(extents[i.name] for i in loop.indices)
        self.rows = [min(self.tile, self.extent - start) for start in range(0, self.extent, self.tile)]
        self.trips = len(self.rows)

    def positions(self, trip: int, index: str, extents: Mapping[str, int]) -> list[int]:
        """Where *index* stands in the rows of a tile, sorted, each once."""
        names = [i.name for i in self.loop.indices]
        faster = prod(extents[name] for name in names[names.index(index) + 1 :])
        start = trip * self.tile
        return sorted({row // faster % extents[index] for row in range(start, start + self.rows[trip])})


def kept_tiles(
    mask: Mask | None, loops: Sequence[Tiles], values: Values, extents: Mapping[str, int]
) -> tuple[Coordinates, frozenset[Coordinates]] | None:
    """Which loops run over rows, keys and parts of the keys, and the tiles of theirs in which some query sees some key.

    ``None`` where rows or keys have no loop of their own: then nothing can be skipped.
    """
    if mask is None:
        return None
    found = {i.name: n for n, tiles in enumerate(loops) for i in tiles.loop.indices}
    row, column = found.get(mask.row), found.get(mask.column)
    if row is None or column is None or row == column:
        return None
    ends = intervals(mask, values)
    keys = [loops[column].positions(j, mask.column, extents) for j in range(loops[column].trips)]
    where: Coordinates = (row, column)
    starts = [0]
    if mask.part:
        where = (row, column, found[mask.part])
        starts = [part * extents[mask.column] for part in range(loops[found[mask.part]].trips)]
    kept = set()
    for i in range(loops[row].trips):
        seen = {span for q in loops[row].positions(i, mask.row, extents) for span in ends[q]}
        for (j, tile), (part, start) in product(enumerate(keys), enumerate(starts)):
            if any(bisect_left(tile, a - start) < bisect_right(tile, z - start) for a, z in seen):
                kept.add((i, j, part)[: len(where)])
    return where, frozenset(kept)

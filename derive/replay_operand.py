"""A tensor as the tile walker sees it: the tiles that the loops of one kernel cut it into, and what a CTA loads of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from operator import itemgetter

from derive.einsum import Index, Tensor
from derive.paging import Paging
from derive.replay_mask import Coordinates, Tiles


class Operand:
    """A tensor as the tiles of one kernel cut it."""

    def __init__(self, tensor: Tensor, loops: list[Tiles], extents: Mapping[str, int]) -> None:
        self.name = tensor.name
        self.carriers = tuple(n for n, tiles in enumerate(loops) if tiles.loop.carried_by(tensor))
        self.tile_at = picked(self.carriers)
        looped = {i.name for n in self.carriers for i in loops[n].loop.indices}
        self._rest = prod(extents[i.name] for i in tensor.indices if i.name not in looped)
        self._loops = loops
        self._known: dict[Coordinates, int] = {}

    def elements(self, tile: Coordinates) -> int:
        """How many elements a tile has."""
        if tile not in self._known:
            rows = (self._loops[n].rows[t] for n, t in zip(self.carriers, tile, strict=True))
            self._known[tile] = self._rest * prod(rows)
        return self._known[tile]

    def visits(self, iterations: list[Coordinates]) -> list[tuple[Coordinates, int, int]]:
        """Runs of iterations that need the same tile: (tile, first step, last step)."""
        found: list[tuple[Coordinates, int, int]] = []
        held: Coordinates | None = None
        start = 0
        for step, tile in enumerate(map(self.tile_at, iterations)):
            if tile != held:
                if held is not None:
                    found.append((held, start, step - 1))
                held, start = tile, step
        if held is not None:
            found.append((held, start, len(iterations) - 1))
        return found

    def loads(self, iterations: list[Coordinates], *, backwards: bool) -> Iterator[tuple[Coordinates, int, int]]:
        """What a CTA loads over its iterations, in whichever direction it runs: (tile, at which step, elements)."""
        del backwards  # a tile is loaded whole, from either side
        for tile, first, _ in self.visits(iterations):
            yield tile, first, self.elements(tile)


class Table(Operand):
    """A table of pages as the tiles of the rows cut it: a tile of rows needs the entries of the pages that they lie in.

    A CTA that goes on to the rows behind those of the tile before (in front, if it goes *backwards*) still holds the entry of a
    page that they share.
    """

    def __init__(self, table: Tensor, paging: Paging[Index], loops: list[Tiles], extents: Mapping[str, int]) -> None:
        others = tuple(i for i in table.indices if i != paging.entry)
        super().__init__(replace(table, indices=(*others, *paging.rows)), loops, extents)
        self._paging, self._extents = paging, extents
        self._tables = Operand(replace(table, indices=others), loops, extents)
        self._needed: dict[Coordinates, tuple[set[int], set[int]]] = {}

    def _rows_and_entries(self, tile: Coordinates) -> tuple[set[int], set[int]]:
        """The numbers of a tile's rows, and the entries that they need."""
        if tile not in self._needed:
            at = dict(zip(self.carriers, tile, strict=True))
            rows = {0}
            for index in self._paging.rows:
                inside = range(self._extents[index.name])
                for n, trip in at.items():
                    if index in self._loops[n].loop.indices:
                        inside = inside[trip * self._loops[n].tile :][: self._loops[n].tile]
                rows = {row * self._extents[index.name] + i for row in rows for i in inside}
            self._needed[tile] = rows, {row // self._extents[self._paging.row.name] for row in rows}
        return self._needed[tile]

    def _times(self, tile: Coordinates) -> int:
        """How many tables the tile is of."""
        at = dict(zip(self.carriers, tile, strict=True))
        return self._tables.elements(tuple(at[n] for n in self._tables.carriers))

    def elements(self, tile: Coordinates) -> int:
        """How many entries the rows of a tile need."""
        return self._times(tile) * len(self._rows_and_entries(tile)[1])

    def loads(self, iterations: list[Coordinates], *, backwards: bool) -> Iterator[tuple[Coordinates, int, int]]:
        """The entries that a CTA loads: those that it does not hold from the tile before."""
        before: set[int] = set()
        held: set[int] = set()
        for tile, first, _ in self.visits(iterations):
            rows, entries = self._rows_and_entries(tile)
            goes_on = bool(before) and (max(rows) + 1 == min(before) if backwards else min(rows) == max(before) + 1)
            yield tile, first, self._times(tile) * len(entries - held if goes_on else entries)
            before, held = rows, entries


def picked(positions: tuple[int, ...]) -> Callable[[Coordinates], Coordinates]:
    """Maps an iteration to its coordinates at *positions*: the tile that it needs."""
    if not positions:
        return lambda _: ()
    if len(positions) == 1:
        only = positions[0]
        return lambda at: (at[only],)
    return itemgetter(*positions)

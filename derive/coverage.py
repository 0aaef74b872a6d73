r"""Which tiles a mask leaves: the sums over row tiles that counts of work and traffic share.

With tiles of B_r rows and B_c keys, row tile i meets the key tiles from floor(begin/B_c) to ceil(end/B_c), where begin is
the first key its first row sees and end is one past the last key its last row sees. All sums below run over i; the
extents of ragged tiles are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import sympy as sp

from derive.errors import DomainError
from derive.extremes import down, least, most, up
from derive.mask import Mask
from derive.schedule import Loop
from derive.symbols import dummy

I = dummy("i")  # noqa: E741  (the row tile's number, as in the papers)


@dataclass(frozen=True)
class Coverage:
    """The tiles that *mask* leaves under a loop over rows and a loop over keys.

    Attributes:
        mask: the mask.
        rows: the loop over queries, possibly flattened with the heads that share a KV head (heads fastest).
        keys: the loop over keys.
    """

    mask: Mask
    rows: Loop
    keys: Loop

    @property
    def _heads(self) -> sp.Expr:
        """Flattened rows a query: 1, or the query heads packed into the tile."""
        return sp.Mul(*(i.extent for i in self.rows.indices if i.name != self.mask.row))

    def _query(self, row: sp.Expr) -> sp.Expr:
        """The query that a flattened row belongs to."""
        return row if self._heads == 1 else down(row / self._heads)

    def _begin(self, i: sp.Expr) -> sp.Expr:
        return self.mask.begin(self._query(i * self.rows.tile))

    def _end(self, i: sp.Expr) -> sp.Expr:
        if i == self.rows.trips - 1:
            return self.mask.end(self.mask.rows - 1)
        past_last_row = least((i + 1) * self.rows.tile, self.rows.extent)
        return self.mask.end(self._query(past_last_row - 1))

    def tiles_of(self, i: sp.Expr) -> sp.Expr:
        """Key tiles that row tile *i* meets."""
        tiles = up(self._end(i) / self.keys.tile)
        if self.mask.first is None:
            return tiles
        return most(tiles - down(self._begin(i) / self.keys.tile), sp.Integer(0))

    def keys_of(self, i: sp.Expr) -> sp.Expr:
        """Key rows in the tiles that row tile *i* meets."""
        past = self._whole_tiles(self._end(i))
        if self.mask.first is None:
            return past
        return most(past - self.keys.tile * down(self._begin(i) / self.keys.tile), sp.Integer(0))

    @cached_property
    def tiles(self) -> sp.Expr:
        """Tile pairs met in all."""
        return self._over_rows(self.tiles_of(I))

    @cached_property
    def key_rows(self) -> sp.Expr:
        """Key rows met, added up over row tiles: what a kernel that holds a row tile reads of K."""
        return self._over_rows(self.keys_of(I))

    @cached_property
    def query_rows_met(self) -> sp.Expr:
        """Query rows of row tiles, once for every key tile that they meet."""
        return self._rows_weighted(self.tiles_of)

    @cached_property
    def query_rows(self) -> sp.Expr:
        """Query rows brought in when the loop over keys stands just outside: once for every key tile they meet.

        The last row tile stays when the next key tile is met by it alone.
        """
        last = self.rows.trips - 1
        stays = most(self.tiles_of(last) - most(self.tiles_of(last - 1), sp.Integer(1)), sp.Integer(0))
        return self.query_rows_met - stays * (self.rows.extent - self.rows.tile * last)

    @cached_property
    def query_rows_once(self) -> sp.Expr:
        """Query rows in row tiles that meet any key tile; rows that see no key stand first when only the end is bounded."""
        if self.mask.first is None:
            blind = self.mask.rows_blind_above * self._heads
            return self.rows.extent - self.rows.tile * down(blind / self.rows.tile)
        return self._rows_weighted(lambda i: least(self.tiles_of(i), sp.Integer(1)))

    @cached_property
    def key_rows_once(self) -> sp.Expr:
        """Key rows that some row tile meets; the bounds rise with i, so the first and the last row tile tell."""
        past = self._whole_tiles(self._end(self.rows.trips - 1))
        if self.mask.first is None:
            return past
        return most(past - self.keys.tile * down(self._begin(sp.Integer(0)) / self.keys.tile), sp.Integer(0))

    def _whole_tiles(self, end: sp.Expr) -> sp.Expr:
        """Key rows up to the end of the tile that key *end* - 1 lies in."""
        if end == self.keys.extent:
            return end
        return least(self.keys.tile * up(end / self.keys.tile), self.keys.extent)

    def _over_rows(self, summand: sp.Expr) -> sp.Expr:
        return sp.Sum(summand, (I, 0, self.rows.trips - 1))

    def _rows_weighted(self, weight: object) -> sp.Expr:
        """``sum_i rows(i) weight(i)``: the last row tile may be ragged."""
        missing = self.rows.tile * self.rows.trips - self.rows.extent
        return self.rows.tile * self._over_rows(weight(I)) - missing * weight(self.rows.trips - 1)  # type: ignore[operator]


@lru_cache(maxsize=256)
def coverage(mask: Mask | None, loops: tuple[Loop, ...]) -> Coverage | None:
    """The coverage of *mask* under *loops*, where both of its indices are tiled.

    Raises:
        DomainError: a loop order whose tiles stay from one iteration to the next in ways that are not counted.
    """
    if mask is None:
        return None
    rows = next((x for x in loops if mask.row in {i.name for i in x.indices}), None)
    keys = next((x for x in loops if mask.column in {i.name for i in x.indices}), None)
    if rows is None or keys is None:
        return None
    keys_outside = loops.index(keys) < loops.index(rows)
    if not rows.grid and (not keys_outside or mask.first is not None):
        raise DomainError(
            f"tiles skipped under {mask.name} are counted with rows on the grid, or inside the keys under a mask without a "
            f"first key; got {', '.join(map(str, loops))}"
        )
    return Coverage(mask, rows, keys)

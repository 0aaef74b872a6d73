r"""Which tiles a mask leaves: the sums over row tiles that counts of work and traffic share.

With tiles of B_r rows and B_c keys, row tile i meets the key tiles from floor(begin/B_c) to ceil(end/B_c), where begin is
the first key its first row sees and end is one past the last key its last row sees. All sums below run over i; the
extents of ragged tiles are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from derive.extremes import down, least, most, up
from derive.interval import Interval
from derive.mask import Mask, Span, united
from derive.row_tiles import rows_that_stay
from derive.schedule import Loop
from derive.symbols import dummy

I = dummy("i")  # noqa: E741  (the row tile's number, as in the papers)
PART = dummy("p")
"""The number of a part of the keys."""


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
    def parts(self) -> Loop | None:
        """The loop over parts of the keys, where they are cut."""
        return None

    @property
    def parts_met(self) -> sp.Expr:
        """Parts of the keys of which some tile is met; 1 where they are not cut."""
        return sp.Integer(1)

    @property
    def _heads(self) -> sp.Expr:
        """Flattened rows a query: 1, or the query heads packed into the tile."""
        return sp.Mul(*(i.extent for i in self.rows.indices if i.name != self.mask.row))

    def _query(self, row: sp.Expr) -> sp.Expr:
        """The query that a flattened row belongs to."""
        return row if self._heads == 1 else down(row / self._heads)

    def _rows_of(self, i: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """The first and the last query of row tile *i*."""
        first = self._query(i * self.rows.tile)
        if i == self.rows.trips - 1:
            return first, self.mask.rows - 1
        return first, self._query(least((i + 1) * self.rows.tile, self.rows.extent) - 1)

    def _first_tile(self, interval: Interval, first_row: sp.Expr, begin: sp.Expr) -> sp.Expr:
        """The key tile that *begin* lies in, or one past all tiles where it lies past all keys."""
        tile, past = down(begin / self.keys.tile), self.mask.is_past_the_keys(interval, first_row)
        return tile if past == 0 else most(tile, least(self.keys.trips, self.keys.trips * past))

    def _tile_spans(self, first_row: sp.Expr, last_row: sp.Expr) -> list[tuple[Interval, Span]]:
        """For each interval the first key tile that the queries meet and one past the last."""
        found = []
        for interval in self.mask.intervals:
            begin, end = self.mask.span(interval, first_row, last_row)
            tile = self._first_tile(interval, first_row, begin)
            past = up(end / self.keys.tile)
            if interval.may_be_empty_inside:
                past = least(past, tile + self.keys.trips * most(end - begin, sp.Integer(0)))
            found.append((interval, (tile, past)))
        return found

    def _key_spans(self, first_row: sp.Expr, last_row: sp.Expr) -> list[tuple[Interval, Span]]:
        """The same in keys: from the start of the first tile to the end of the last."""
        found = []
        for interval in self.mask.intervals:
            begin, end = self.mask.span(interval, first_row, last_row)
            start = self.keys.tile * self._first_tile(interval, first_row, begin)
            past = self._whole_tiles(end)
            if self.mask.is_past_the_keys(interval, first_row) != 0:
                start = least(start, self.keys.extent)
            if interval.may_be_empty_inside:
                past = least(past, start + self.keys.extent * most(end - begin, sp.Integer(0)))
            found.append((interval, (start, past)))
        return found

    def tiles_of(self, i: sp.Expr) -> sp.Expr:
        """Key tiles that row tile *i* meets."""
        return united(self._tile_spans(*self._rows_of(i)))

    def keys_of(self, i: sp.Expr) -> sp.Expr:
        """Key rows in the tiles that row tile *i* meets."""
        return united(self._key_spans(*self._rows_of(i)))

    @cached_property
    def tiles(self) -> sp.Expr:
        """Tile pairs met in all."""
        return self._over_rows(self.tiles_of(I))

    @cached_property
    def key_rows(self) -> sp.Expr:
        """Key rows met, added up over row tiles: what a kernel that holds a row tile reads of K."""
        return self._over_rows(self.keys_of(I))

    @cached_property
    def pairs(self) -> sp.Expr:
        """(Query, key) pairs in the tile pairs that are met, the ragged ones as large as they are."""
        return self._rows_weighted(self.keys_of)

    @cached_property
    def query_rows_met(self) -> sp.Expr:
        """Query rows of row tiles, once for every key tile that they meet."""
        return self._rows_weighted(self.tiles_of)

    @cached_property
    def query_rows(self) -> sp.Expr:
        """Query rows brought in when the loop over keys stands just outside: once for every key tile they meet.

        A row tile that is the last to meet one key tile and the first to meet the next stays in between.
        """
        if not self.mask.is_one_interval:
            return self.query_rows_met - rows_that_stay(self.mask, self.rows, self.keys)
        if not self.mask.starts_at_key_0:
            return self._rows_weighted(lambda i: self.tiles_of(i) - self._stays(i))
        last = (
            self.rows.trips - 1
        )  # all key tiles end with the last row tile: it stays when it meets the next one alone
        stays = most(self.tiles_of(last) - most(self.tiles_of(last - 1), sp.Integer(1)), sp.Integer(0))
        return self.query_rows_met - stays * (self.rows.extent - self.rows.tile * last)

    def _stays(self, i: sp.Expr) -> sp.Expr:
        """Key tiles j such that row tile *i* is the last that meets j and the first that meets j + 1.

        It meets both; the next row tile begins past j, and the one before ends at j + 1 at the latest.
        """
        tiles = self.keys.trips
        ((_, (begin, end)),) = self._tile_spans(*self._rows_of(i))
        ((_, (following, _)),) = self._tile_spans(*self._rows_of(i + 1))
        ((_, (_, before)),) = self._tile_spans(*self._rows_of(i - 1))
        following = most(following, tiles * most(i + 2 - self.rows.trips, sp.Integer(0)))  # none after the last
        before = least(before, tiles * i)  # nor before the first
        return most(least(end - 1, following) - most(begin, before - 1), sp.Integer(0))

    @cached_property
    def query_rows_once(self) -> sp.Expr:
        """Query rows in row tiles that meet any key tile; those that see no key mostly stand first."""
        if self.mask.blind_rows_stand_first:
            blind = self.mask.rows_blind_above * self._heads
            seen = self.rows.extent - self.rows.tile * down(blind / self.rows.tile)
            return most(seen - self.rows.extent * self._none(blind), sp.Integer(0))
        return self._rows_weighted(lambda i: least(self.tiles_of(i), sp.Integer(1)))

    def _none(self, blind: sp.Expr) -> sp.Expr:
        """1 where all rows are blind, the last and perhaps ragged tile included; 0 where that plainly never happens."""
        return sp.Integer(0) if self.mask.some_row_sees_a_key else most(blind - self.rows.extent + 1, sp.Integer(0))

    @cached_property
    def row_tiles(self) -> sp.Expr:
        """Row tiles that meet any key tile."""
        if self.mask.blind_rows_stand_first:
            blind = self.mask.rows_blind_above * self._heads
            seen = self.rows.trips - down(blind / self.rows.tile)
            return most(seen - self.rows.trips * self._none(blind), sp.Integer(0))
        return self._over_rows(least(self.tiles_of(I), sp.Integer(1)))

    @cached_property
    def key_rows_once(self) -> sp.Expr:
        """Key rows that some row tile meets; the bounds rise with i, so the first and the last row tile tell."""
        return united(self._key_spans(sp.Integer(0), self.mask.rows - 1))

    @cached_property
    def key_tiles_once(self) -> sp.Expr:
        """Key tiles that some row tile meets."""
        return united(self._tile_spans(sp.Integer(0), self.mask.rows - 1))

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

r"""Sums over the tiles of a mask, held between monomials.

Let P be the (query, key) pairs that the mask keeps, T_r = ceil(rows/B_r), and S the widest span of keys that B_r neighbouring
rows see. A tile holds at most B_r B_c pairs, and a span of S keys meets at most S/B_c + 2 tiles, so

    P/(B_r B_c) <= tiles <= T_r (S/B_c + 2),     P/B_r <= key rows <= T_r (S + 2 B_c),     P/(2 B_c) <= query rows <= B_r tiles.

Of several intervals each has a span of its own, and one that ends before row u has ceil(u/B_r) row tiles.

The 2 is for the last of several row tiles, which stays on chip once it alone meets what is left; where every row sees a key,
it meets at most twice the keys of the tile before it. As tiles become small against the mask, query rows tend to P/B_c.

Under a causal mask P is at least half the rectangle, so both sides grow alike; under a window of W keys S is B_r + W.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import sympy as sp

from derive.block_list import BlockList
from derive.clamped import stair_of
from derive.coverage import Coverage
from derive.density import Density
from derive.errors import DomainError
from derive.extremes import least, most
from derive.growth.parameters import Condition
from derive.interval import Interval
from derive.mask import Mask
from derive.places import Places
from derive.schedule import Loop
from derive.steps import Steps
from derive.substitution import free
from derive.symbols import MEANINGS, ROW, N_k, N_q, is_fraction


@dataclass(frozen=True)
class TileBounds:
    """The sums of a coverage, each replaced by a bound; what is no sum stays exact.

    Attributes:
        exact: the coverage.
        up: whether the bounds are from above.
        tending: from below, what the sums tend to while tiles are small against the mask, in place of a bound.
    """

    exact: Coverage
    up: bool
    tending: bool = False

    @property
    def rows(self) -> Loop:
        """The loop over queries."""
        return self.exact.rows

    @property
    def keys(self) -> Loop:
        """The loop over keys."""
        return self.exact.keys

    @property
    def parts(self) -> Loop | None:
        """The loop over parts of the keys, where they are cut."""
        return self.exact.parts

    @property
    def _number_of_parts(self) -> sp.Expr:
        return sp.Integer(1) if self.parts is None else self.parts.trips

    @property
    def parts_met(self) -> sp.Expr:
        """Parts of the keys of which some tile is met: at most all, at least as many as hold the keys that are seen."""
        if self.parts is None or self.up:
            return self._number_of_parts
        mask = self.exact.mask
        return self._number_of_parts * mask.keys_touched / mask.columns

    @property
    def _heads(self) -> sp.Expr:
        """Flattened rows a query."""
        return self.rows.extent / self.exact.mask.rows

    @property
    def _kept(self) -> sp.Expr:
        """Pairs kept, counting each of the flattened rows."""
        return sp.expand(self.exact.mask.pairs) * self._heads

    def span(self, interval: Interval) -> sp.Expr:
        """Keys from the first that a row tile's first row sees of *interval* to the last that its last row sees, at most."""
        first, last = interval.first, interval.last
        if last is None or interval.copies != 1:
            return self.exact.mask.columns
        ends = [(_highest(last), sp.Integer(0) if first is None else _lowest(first))]
        if (
            first is not None and first.func is last.func is sp.Max
        ):  # two maxima differ by no more than their members do
            ends = [(a, b) for a in last.args for b in first.args if a.has(ROW) == b.has(ROW)]
        wide = [sp.expand(a.subs(ROW, ROW + self.rows.tile) - b + int(not a.has(ROW))) for a, b in ends]
        return self.exact.mask.columns if any(each.has(ROW) for each in wide) else reduce(most, wide)

    @property
    def tiles(self) -> sp.Expr:
        """Tile pairs met."""
        if not self.up:
            return self._kept / self.rows.tile / self.keys.tile
        mask = self.exact.mask
        trips = {i: self.rows.trips if i.until is None else self._trips_before(i.until) for i in mask.intervals}
        met = (trips[i] * (self.span(i) / self.keys.tile + 2 * self._number_of_parts) for i in mask.intervals)
        return sp.Add(*met)

    def _trips_before(self, row: sp.Expr) -> sp.Expr:
        """Row tiles before *row*, at most: ceil(row/B_r), which is 0 where no row stands before it."""
        return row / self.rows.tile + least(row, sp.Integer(1))

    @property
    def pairs(self) -> sp.Expr:
        """Pairs in the tile pairs that are met."""
        return self.tiles * self.rows.tile * self.keys.tile

    @property
    def row_tiles(self) -> sp.Expr:
        """Row tiles that meet any key tile."""
        return self.rows.trips * self._number_of_parts if self.up else self.exact.query_rows_once / self.rows.tile

    @property
    def key_rows(self) -> sp.Expr:
        """Key rows met, added up over row tiles: of several intervals each key that is seen at least once."""
        rows = self.tiles * self.keys.tile
        once = self.up or self.tending or self.exact.mask.is_one_interval
        return rows if once else most(rows, self.key_rows_once)

    @property
    def query_rows(self) -> sp.Expr:
        """Query rows met, added up over key tiles: each at least once that sees any key.

        Queries before the end of an interval may alone see many keys, and then stay: they are left out from below.
        """
        rows, mask = self.tiles * self.rows.tile, self.exact.mask
        if self.up or self.tending:
            return rows
        alone = sp.Add(*(mask.pairs_of(i) for i in mask.intervals if i.until is not None))
        return most((rows - self._heads * sp.expand(alone) / self.keys.tile) / 2, self.query_rows_once)

    @property
    def query_rows_met(self) -> sp.Expr:
        """The same when no row tile stays from one key tile to the next."""
        return self.tiles * self.rows.tile

    @property
    def query_rows_once(self) -> sp.Expr:
        """Query rows in row tiles that meet any key: where that is a sum, at least the rows that see one, and at most all."""
        exact, mask = self.exact.query_rows_once, self.exact.mask
        if not exact.has(sp.Sum):
            return exact
        return self.rows.extent if self.up else mask.rows_touched * self.rows.extent / mask.rows

    @property
    def key_rows_once(self) -> sp.Expr:
        """Key rows that meet any query: exactly, or of several intervals those that are seen, and two tiles' beside each."""
        mask = self.exact.mask
        if mask.is_one_interval:
            return self.exact.key_rows_once
        return mask.keys_touched + (2 * len(mask.intervals) * self.keys.tile if self.up else 0)

    @property
    def key_tiles_once(self) -> sp.Expr:
        """Key tiles that meet any query."""
        return self.keys.trips * self._number_of_parts if self.up else self.key_rows_once / self.keys.tile


def _lowest(bound: sp.Expr) -> sp.Expr:
    """What *bound* is never below: for a stair of steps C the line C - 1 under it."""
    if (stair := stair_of(bound)) is None:
        return bound
    size, offset = stair
    return ROW + offset - size + 1


def _highest(bound: sp.Expr) -> sp.Expr:
    """What *bound* is never above: of a minimum the member that no row changes."""
    return next((part for part in bound.args if not part.has(ROW)), bound) if bound.func is sp.Min else bound


def narrowest(masks: Iterable[Mask]) -> Mask | None:
    """Of the masks of one graph the one that says most: that of the places of selected keys, or the first."""
    found = tuple(masks)
    return next((m for m in found if isinstance(m, Places)), next(iter(found), None))


def sizes_fit(mask: Mask | None, alike: Mapping[sp.Symbol, sp.Expr]) -> list[Condition]:
    """That sizes of *mask*, such as a window, are at most the keys there are: beyond that they change nothing."""
    if mask is None:
        return []
    if isinstance(mask, Places):
        return sizes_fit(mask.source, alike)
    keys = mask.columns.xreplace(dict(alike))
    sizes = free(mask.pairs) - free(mask.rows) - free(mask.columns)
    # the places of selected keys are masked by the lengths of what they are selected from, which are no sizes of a mask
    sizes -= {N_q, N_k}
    return [(s, keys) for s in sorted(sizes, key=str) if s.name in MEANINGS and not is_fraction(s)]


def regime_of(mask: Mask | None, alike: Mapping[sp.Symbol, sp.Expr]) -> list[Condition]:
    """The regime in which a class under *mask* is derived: its sizes take at most half of the keys together.

    Where keys are selected, no more than a query sees where no end is near: else nothing is selected.

    Raises:
        DomainError: there is none, since lengths are given as numbers or a query's keys stand apart.
    """
    if mask is None:
        return []
    if isinstance(mask, Places):
        if not mask.rises and not _is_listed(mask.source):
            raise DomainError(
                f"under mask={mask.name} one query selects from more keys than the next: no class is derived; "
                "`derive explain` counts them exactly"
            )
        seen = sp.Add(*(size for size, _ in sizes_fit(mask.source, alike)))
        return [*regime_of(mask.source, alike), *([(mask.columns, seen)] if seen != 0 else [])]
    intervals = () if isinstance(mask, Density) else mask.intervals
    if _is_listed(mask):
        raise DomainError(
            f"mask={mask.name} is a list for one length, and a class says how traffic grows with it; mask=chunk with a "
            "symbolic C is documents of one length, mask=block-sparse a share of tiles, and `derive explain` counts the list"
        )
    if any(i.copies != 1 for i in intervals):
        raise DomainError(
            f"under mask={mask.name} a query's keys stand apart, and how many tiles they meet depends on tiles and stride "
            "alike: no class is derived; `derive explain` counts them exactly"
        )
    found = sizes_fit(mask, alike)
    queries, keys = (n.xreplace(dict(alike)) for n in (mask.rows, mask.columns))
    if queries == keys or not (queries.free_symbols and keys.free_symbols):
        return [(2 * len(found) * size, keys) for size, _ in found]
    if any(
        i.first is not None and (stair := stair_of(i.first)) and stair[1].has(*free(mask.columns)) for i in intervals
    ):
        raise DomainError(
            f"under mask={mask.name} with queries and keys of two lengths the first query may stand anywhere in its chunk, and "
            "its pairs are no sum of monomials: no class is derived; top-left (mask=chunk-tl) and of one length there is one, "
            "and `derive explain` counts them exactly"
        )
    return _apart([size for size, _ in found], queries, keys, intervals)


def _is_listed(mask: Mask) -> bool:
    """Whether lengths or blocks are given as numbers."""
    intervals = () if isinstance(mask, Density) else mask.intervals
    numbered = any(end is not None and end.has(Steps) for i in intervals for end in (i.first, i.last))
    return numbered or isinstance(mask, BlockList)


def _apart(sizes: list[sp.Expr], queries: sp.Expr, keys: sp.Expr, intervals: tuple[Interval, ...]) -> list[Condition]:
    """The regime where there are fewer queries than keys, or more where the first query stands on the first key."""
    lines = [(i, _moving(i.last)) for i in intervals if i.last is not None and i.last.has(ROW)]
    ahead = any(line.coeff(size) > 0 for _, line in lines for size in sizes)  # a query sees keys behind its own
    if any(line.has(keys) for _, line in lines) and not ahead:
        few = [*sizes, queries]
        return [(2 * len(few) * size if sizes else size, keys) for size in few]
    local = all(i.first is not None or isinstance(i.last, sp.Min) for i, line in lines)
    few, many = (queries, keys) if local else (keys, queries)
    return [*((2 * len(sizes) * size, few) for size in sizes), (2 * few if ahead else few, many)]


def _moving(end: sp.Expr) -> sp.Expr:
    """The member of *end* that moves with the query."""
    return next(part for part in end.args if part.has(ROW)) if end.func in (sp.Min, sp.Max) else end

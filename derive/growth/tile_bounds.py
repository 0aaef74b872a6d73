r"""Sums over the tiles of a mask, held between monomials.

Let P be the (query, key) pairs that the mask keeps, T_r = ceil(rows/B_r), and S the widest span of keys that B_r neighbouring
rows see. A tile holds at most B_r B_c pairs, and a span of S keys meets at most S/B_c + 2 tiles, so

    P/(B_r B_c) <= tiles <= T_r (S/B_c + 2),     P/B_r <= key rows <= T_r (S + 2 B_c),     P/(2 B_c) <= query rows <= B_r tiles.

The 2 is for the last of several row tiles, which stays on chip once it alone meets what is left; where every row sees a key,
it meets at most twice the keys of the tile before it. As tiles become small against the mask, query rows tend to P/B_c.

Under a causal mask P is at least half the rectangle, so both sides grow alike; under a window of W keys S is B_r + W.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from derive.coverage import Coverage
from derive.growth.parameters import Condition
from derive.mask import Mask
from derive.schedule import Loop
from derive.symbols import MEANINGS, ROW, is_fraction


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
    def _kept(self) -> sp.Expr:
        """Pairs kept, counting each of the flattened rows."""
        heads = self.rows.extent / self.exact.mask.rows
        return sp.expand(self.exact.mask.pairs) * heads

    @property
    def span(self) -> sp.Expr:
        """Keys between the first that a row tile's first row sees and the last that its last row sees, at most."""
        mask = self.exact.mask
        if mask.first is None or mask.last is None or not mask.is_one_interval:
            return mask.columns
        wide = sp.expand(mask.last.subs(ROW, ROW + self.rows.tile) - mask.first)
        return mask.columns if wide.has(ROW) else wide

    @property
    def tiles(self) -> sp.Expr:
        """Tile pairs met."""
        if not self.up:
            return self._kept / self.rows.tile / self.keys.tile
        return self.rows.trips * (self.span / self.keys.tile + 2 * self._number_of_parts)

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
        """Key rows met, added up over row tiles."""
        return self.tiles * self.keys.tile

    @property
    def query_rows(self) -> sp.Expr:
        """Query rows met, added up over key tiles."""
        rows = self.tiles * self.rows.tile
        return rows if self.up or self.tending else rows / 2

    @property
    def query_rows_met(self) -> sp.Expr:
        """The same when no row tile stays from one key tile to the next."""
        return self.tiles * self.rows.tile

    @property
    def query_rows_once(self) -> sp.Expr:
        """Query rows that meet any key, exactly."""
        return self.exact.query_rows_once

    @property
    def key_rows_once(self) -> sp.Expr:
        """Key rows that meet any query, exactly."""
        return self.exact.key_rows_once

    @property
    def key_tiles_once(self) -> sp.Expr:
        """Key tiles that meet any query."""
        return self.keys.trips * self._number_of_parts if self.up else self.exact.key_rows_once / self.keys.tile


def sizes_fit(mask: Mask | None, alike: Mapping[sp.Symbol, sp.Expr]) -> list[Condition]:
    """That sizes of *mask*, such as a window, are at most the keys there are: beyond that they change nothing."""
    if mask is None:
        return []
    keys = mask.columns.xreplace(dict(alike))
    sizes = mask.pairs.free_symbols - mask.rows.free_symbols - mask.columns.free_symbols
    return [(s, keys) for s in sorted(sizes, key=str) if s.name in MEANINGS and not is_fraction(s)]

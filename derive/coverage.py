"""The coverage of a mask under a loop nest: of intervals of keys, of parts of the keys, of a density, or of listed blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import sympy as sp

from derive.block_list import BlockList
from derive.covered import PART, Coverage
from derive.density import Density
from derive.einsum import Index
from derive.errors import DomainError
from derive.extremes import least
from derive.mask import Mask
from derive.met_blocks import COUNTS, Listed, Met
from derive.places import Places
from derive.row_tiles import are_plain
from derive.schedule import Loop
from derive.symbols import C_b

__all__ = ["PART", "BlockCoverage", "Coverage", "DensityCoverage", "PartedCoverage", "coverage"]


@dataclass(frozen=True)
class PartedCoverage(Coverage):
    """Tiles left where the keys are cut into parts: the sum over the parts of what the mask keeps of each.

    Attributes:
        over: the loop over the parts, one a trip.
    """

    over: Loop = Loop((), sp.Integer(1))  # noqa: RUF009  (frozen)

    @property
    def parts(self) -> Loop | None:
        """The loop over parts of the keys."""
        return self.over

    @cached_property
    def parts_met(self) -> sp.Expr:
        """Parts of the keys of which some row tile meets a tile."""
        return self._sum(least(self._part.row_tiles, sp.Integer(1)))

    @cached_property
    def _part(self) -> Coverage:
        """The tiles left in part ``PART``."""
        return Coverage(self.mask.inside(PART), self.rows, self.keys)

    def _sum(self, of_a_part: sp.Expr) -> sp.Expr:
        return sp.Sum(of_a_part, (PART, 0, self.over.trips - 1))

    @cached_property
    def tiles(self) -> sp.Expr:
        """Tile pairs met in all parts."""
        return self._sum(self._part.tiles)

    @cached_property
    def key_rows(self) -> sp.Expr:
        """Key rows met in all parts."""
        return self._sum(self._part.key_rows)

    @cached_property
    def pairs(self) -> sp.Expr:
        """Pairs in the tile pairs met in all parts."""
        return self._sum(self._part.pairs)

    @cached_property
    def query_rows_met(self) -> sp.Expr:
        """Query rows, once for every key tile of every part that they meet."""
        return self._sum(self._part.query_rows_met)

    @cached_property
    def query_rows(self) -> sp.Expr:
        """Query rows brought in by all parts, the loop over keys standing just outside."""
        return self._sum(self._part.query_rows)

    @cached_property
    def query_rows_once(self) -> sp.Expr:
        """Query rows in row tiles that meet a key tile of a part, once for each such part."""
        return self._sum(self._part.query_rows_once)

    @cached_property
    def query_rows_of_any_part(self) -> sp.Expr:
        """Query rows in row tiles that meet a key tile of some part, each once."""
        key = Loop((Index(self.mask.column, self.mask.columns),), sp.Integer(1))
        return Coverage(self.mask.cut("", sp.Integer(1)), self.rows, key).query_rows_once

    @cached_property
    def row_tiles(self) -> sp.Expr:
        """Row tiles that meet a key tile of a part, once for each such part."""
        return self._sum(self._part.row_tiles)

    @cached_property
    def key_rows_once(self) -> sp.Expr:
        """Key rows of all parts that some row tile meets."""
        return self._sum(self._part.key_rows_once)

    @cached_property
    def key_tiles_once(self) -> sp.Expr:
        """Key tiles of all parts that some row tile meets."""
        return self._sum(self._part.key_tiles_once)


@dataclass(frozen=True)
class DensityCoverage(Coverage):
    """Tiles kept by a density: products, where those of an interval are sums.

    Attributes:
        met_once: the share of row tiles, and of key tiles, that are met at all; ``None`` for the most that may be, all of them
            or one for each tile pair.
    """

    met_once: sp.Expr | None = None

    @property
    def _share(self) -> sp.Expr:
        assert isinstance(self.mask, Density)
        return self.mask.share

    @property
    def tiles(self) -> sp.Expr:
        """``s T_r T_c``."""
        return self._share * self.rows.trips * self.keys.trips

    @property
    def key_rows(self) -> sp.Expr:
        """``s T_r`` times all keys."""
        return self._share * self.rows.trips * self.keys.extent

    @property
    def pairs(self) -> sp.Expr:
        """A share s of all pairs."""
        return self._share * self.rows.extent * self.keys.extent

    @property
    def query_rows_met(self) -> sp.Expr:
        """``s T_c`` times all rows."""
        return self._share * self.keys.trips * self.rows.extent

    @property
    def query_rows(self) -> sp.Expr:
        """The same: whether a row tile stays from one key tile to the next is left open."""
        return self.query_rows_met

    @property
    def query_rows_once(self) -> sp.Expr:
        """Rows in row tiles that meet any key tile, at most."""
        return self.rows.extent * self._once(self.keys)

    @property
    def row_tiles(self) -> sp.Expr:
        """Row tiles that meet any key tile, at most."""
        return self.rows.trips * self._once(self.keys)

    @property
    def key_rows_once(self) -> sp.Expr:
        """Keys in key tiles that meet any row tile, at most."""
        return self.keys.extent * self._once(self.rows)

    @property
    def key_tiles_once(self) -> sp.Expr:
        """Key tiles that meet any row tile, at most."""
        return self.keys.trips * self._once(self.rows)

    def _once(self, others: Loop) -> sp.Expr:
        return least(self._share * others.trips, sp.Integer(1)) if self.met_once is None else self.met_once


@dataclass(frozen=True)
class BlockCoverage(Coverage):
    """Tiles that meet a listed block: looked up in the list, as ``derive.met_blocks`` does."""

    def _met(self, what: str, rows: sp.Expr, keys: sp.Expr) -> sp.Expr:
        """*what* of the tiles that are met, where row tiles have *rows* rows and key tiles *keys* keys."""
        assert isinstance(self.mask, BlockList)
        sizes = (self.rows.extent, self.keys.extent, rows, keys, C_b * self._heads, C_b)
        return Met(sp.Integer(COUNTS.index(what)), *sizes, Listed(self.mask.kept))

    @property
    def tiles(self) -> sp.Expr:
        """Tile pairs met."""
        return self._met("tiles", self.rows.tile, self.keys.tile)

    @property
    def key_rows(self) -> sp.Expr:
        """Key rows met, added up over row tiles."""
        return self._met("keys", self.rows.tile, self.keys.tile)

    @property
    def pairs(self) -> sp.Expr:
        """Pairs in the tile pairs that are met."""
        return self._met("pairs", self.rows.tile, self.keys.tile)

    @property
    def query_rows_met(self) -> sp.Expr:
        """Query rows of row tiles, once for every key tile that they meet."""
        return self._met("rows", self.rows.tile, self.keys.tile)

    @property
    def query_rows(self) -> sp.Expr:
        """Which row tiles stay from one key tile to the next is not counted.

        Raises:
            DomainError: always.
        """
        raise DomainError(f"rows inside the keys are not counted under mask={self.mask.name}; put the rows outside")

    @property
    def query_rows_once(self) -> sp.Expr:
        """Query rows in row tiles that meet any key tile."""
        return self._met("rows", self.rows.tile, self.keys.extent)

    @property
    def row_tiles(self) -> sp.Expr:
        """Row tiles that meet any key tile."""
        return self._met("tiles", self.rows.tile, self.keys.extent)

    @property
    def key_rows_once(self) -> sp.Expr:
        """Key rows that some row tile meets."""
        return self._met("keys", self.rows.extent, self.keys.tile)

    @property
    def key_tiles_once(self) -> sp.Expr:
        """Key tiles that some row tile meets."""
        return self._met("tiles", self.rows.extent, self.keys.tile)


@dataclass(frozen=True)
class PlacesCoverage(Coverage):
    """Tiles of places that single queries use, where these need not rise from one query to the next."""

    @property
    def query_rows(self) -> sp.Expr:
        """Which queries stay from one tile of places to the next is not counted; raises ``DomainError``."""
        raise self._uncounted

    @property
    def key_rows_once(self) -> sp.Expr:
        """Which places any query uses is not counted; raises ``DomainError``."""
        raise self._uncounted

    @property
    def key_tiles_once(self) -> sp.Expr:
        """Which tiles of places any query uses is not counted; raises ``DomainError``."""
        raise self._uncounted

    @property
    def _uncounted(self) -> DomainError:
        return DomainError(
            f"selected keys under {self.mask.name} are counted query by query; put the queries outside, one a tile"
        )


@lru_cache(maxsize=256)
def coverage(mask: Mask | None, loops: tuple[Loop, ...]) -> Coverage | None:
    """The coverage of *mask* under *loops*, where both of its indices are tiled.

    Raises:
        DomainError: a loop order whose tiles stay from one iteration to the next in ways that are not counted, or one tile of
            several queries, of which one uses more places of selected keys than the next.
    """
    if mask is None:
        return None
    rows = next((x for x in loops if mask.row in {i.name for i in x.indices}), None)
    keys = next((x for x in loops if mask.column in {i.name for i in x.indices}), None)
    if rows is None or keys is None:
        return None
    if isinstance(mask, Density):
        return DensityCoverage(mask, rows, keys)
    if isinstance(mask, Places) and not mask.rises:
        if rows.tile != 1 or len(rows.indices) != 1:
            raise DomainError(
                f"tiles of selected keys that are skipped under {mask.name} are counted with one query a tile; got {rows}"
            )
        return PlacesCoverage(mask, rows, keys)
    keys_outside = loops.index(keys) < loops.index(rows)
    plain = not isinstance(mask, BlockList) and (mask.is_one_interval or are_plain(mask))
    in_turn = not rows.grid and not keys.grid
    if in_turn and mask.part and mask.copies != 1:
        raise DomainError(
            f"tiles skipped under {mask.name} in parts of the keys would be added up part by part, row tile by row tile and "
            "key by key, which takes minutes; leave the parts out, or take a mask whose keys stand together"
        )
    if in_turn and not (keys_outside and plain):
        raise DomainError(
            f"tiles skipped under {mask.name} are counted with rows on the grid, or inside the keys under a mask of a few "
            f"intervals that rise with the query; got {', '.join(map(str, loops))}"
        )
    if isinstance(mask, BlockList):
        return BlockCoverage(mask, rows, keys)
    if not mask.part:
        return Coverage(mask, rows, keys)
    parts = next((x for x in loops if mask.part in {i.name for i in x.indices}), None)
    if parts is None or parts.tile != 1 or not parts.grid:
        raise DomainError(
            f"tiles skipped under {mask.name} in parts of the keys are counted with the parts on the grid, one a CTA; got "
            f"{', '.join(map(str, loops))}"
        )
    return PartedCoverage(mask, rows, keys, parts)

r"""Block-sparse masks of which only the share of tiles that are kept is known.

A share s of the T_r T_c pairs of a row tile and a key tile is kept; which ones is left open, so counts are those of s T_r T_c
whole tiles: a row tile meets s T_c key tiles and a key tile s T_r row tiles, on the mean. Nothing can be run under such a mask.

Source: Dao et al. 2022, arXiv:2205.14135, proposition 4 (block-sparse FlashAttention, s the fraction of non-zero blocks).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.coverage import Coverage
from derive.errors import DomainError
from derive.extremes import least
from derive.mask import Interval, Mask
from derive.schedule import Loop


@dataclass(frozen=True)
class Density(Mask):
    """A mask that keeps a share of all tiles.

    Attributes:
        share: the share that is kept, more than 0 and at most 1.
    """

    share: sp.Expr = sp.Integer(1)  # noqa: RUF009  (SymPy numbers are immutable)

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """There are none: which keys a query sees is left open."""
        raise DomainError(
            f"mask={self.name} says how many tiles are kept and not which: it can be counted, and not be run"
        )

    @property
    def is_one_interval(self) -> bool:
        """Its keys do not stand together."""
        return False

    @property
    def pairs(self) -> sp.Expr:
        """Pairs in the tiles that are kept, tiles being whole on the mean."""
        return self.share * self.rows * self.columns

    @property
    def keys_touched(self) -> sp.Expr:
        """At least this many: a key is seen by no more than all queries."""
        return self.share * self.columns

    @property
    def rows_touched(self) -> sp.Expr:
        """At least this many: a query sees no more than all keys."""
        return self.share * self.rows

    @property
    def starts_at_key_0(self) -> bool:
        """Not every query sees the first key."""
        return False

    def counted_under(self, rows: object, keys: object) -> DensityCoverage:
        """The tiles kept under a loop over rows and a loop over keys."""
        return DensityCoverage(self, rows, keys)  # type: ignore[arg-type]


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
    def key_rows_once(self) -> sp.Expr:
        """Keys in key tiles that meet any row tile, at most."""
        return self.keys.extent * self._once(self.rows)

    def _once(self, others: Loop) -> sp.Expr:
        return least(self._share * others.trips, sp.Integer(1)) if self.met_once is None else self.met_once

r"""Block-sparse masks of which only the share of tiles that are kept is known.

A share s of the T_r T_c pairs of a row tile and a key tile is kept; which ones is left open, so counts are those of s T_r T_c
whole tiles: a row tile meets s T_c key tiles and a key tile s T_r row tiles, on the mean. Nothing can be run under such a mask.

Source: Dao et al. 2022, arXiv:2205.14135, proposition 4 (block-sparse FlashAttention, s the fraction of non-zero blocks).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.errors import DomainError
from derive.interval import Interval
from derive.mask import Mask


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

    def cut(self, part: str, parts: sp.Expr) -> Mask:  # noqa: ARG002  (no part has a count)
        """It says how many tiles are kept: which part has them is left open."""
        raise DomainError(
            f"mask={self.name} says how many tiles are kept and not which: no part of the keys has a count"
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

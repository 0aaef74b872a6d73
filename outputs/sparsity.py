"""How sparse a mask is, at each level by itself: of pairs, of the tiles that a schedule runs, of the blocks that it lists."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.block_list import BlockList
from derive.coverage import coverage
from derive.exact import Number
from outputs.quantities import grouped, significant

if TYPE_CHECKING:
    from outputs.account import Account


@dataclass(frozen=True, slots=True)
class Level:
    """What is kept of how many, of one thing.

    Attributes:
        what: ``pairs``, ``tiles`` or ``blocks``.
        kept: how many are kept.
        of: how many there are.
    """

    what: str
    kept: sp.Expr
    of: sp.Expr


def levels(account: Account) -> list[Level]:
    """Each level at which the mask of *account* leaves something out; none without a mask."""
    mask = account.mask_of
    if mask is None:
        return []
    found = [Level("pairs", mask.pairs, mask.rows * mask.columns)]
    if isinstance(mask, BlockList):
        found.append(Level("blocks", sp.Integer(mask.blocks), mask.of_blocks))
    for kernel in account.derivation.schedule.kernels:
        met = coverage(mask, kernel.loops) if kernel.skips_masked else None
        if met is not None:
            return [*found, Level("tiles", met.tiles, met.rows.trips * met.keys.trips)]
    return found


_IN = {"pairs": "by element", "blocks": "by block of the mask", "tiles": "by tile"}


def lines(accounts: tuple[Account, ...]) -> list[str]:
    """One line a level, once where schedules agree: the share that is left out, and of what."""
    found: dict[str, None] = {}
    for account in accounts:
        for level in levels(account):
            kept, of = account.number(level.kept), account.number(level.of)
            if kept is not None and of:
                who = f"{account.name} runs" if level.what == "tiles" else "the mask keeps"
                words = f"{grouped(kept)} of {grouped(of)} {level.what}: {_share(kept, of)} sparse {_IN[level.what]}"
                found[f"{who} {words}"] = None
    return list(found)


def _share(kept: Number, of: Number) -> str:
    return f"{significant(100 * (1 - Fraction(kept) / Fraction(of)))} %"

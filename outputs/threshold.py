"""The largest length up to which nothing is read from HBM twice: as a formula, and as a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from derive.block_list import BlockList
from derive.choice import at_most, cases
from derive.errors import UnboundError
from derive.exact import Number, value
from derive.substitution import free
from derive.symbols import C_L2, N_k, N_q
from outputs.bisection import last_that_holds

if TYPE_CHECKING:
    from outputs.account import Account

_SCANNED_ROW_TILES = 4096
_LONGEST = 2**90
"""No length beyond this is asked about: what fits there fits everywhere."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where residency ends.

    Attributes:
        symbol: the length that grows.
        formula: the largest length that fits, in the other symbols.
        number: its value; ``None`` while a symbol is open.
    """

    symbol: str
    formula: sp.Expr
    number: int | None


def threshold(account: Account, *, tied: bool) -> Threshold | None:
    """The threshold of *account*; ``None`` when it reads nothing twice, when all lengths fit, or when there is only one.

    Args:
        account: a schedule at given numbers.
        tied: whether N_q grows with N_k, as in self-attention.
    """
    if isinstance(account.mask_of, BlockList):
        return None  # the list is for one length
    if account.live_bytes is None or (account.sharing is not None and not account.rereads):
        return None
    if not account.live_bytes.has(N_k) and not (tied and account.live_bytes.has(N_q)):
        return None
    try:
        number = longest(account, account.values, tied=tied)
        if number is None:
            return None
    except UnboundError:
        number = None
    return Threshold("N" if tied else "N_k", _formula(account, tied=tied), number)


def longest(account: Account, at: Mapping[str, Number], *, tied: bool) -> int | None:
    """The longest length up to which what is live fits at the numbers *at*; ``None`` when every length fits.

    Raises:
        UnboundError: a symbol has no value.
    """
    if account.live_bytes is None:
        return None
    excess = account.live_bytes - C_L2
    values = dict(at)

    def fits(n: int) -> bool:
        values["N_k"] = n
        if tied:
            values["N_q"] = n
        return value(excess, values) <= 0

    steady = account.sharing is None or N_q not in free(account.sharing[1].live)
    return _largest(fits, scan=None if steady or not tied else int(values.get("B_r", 1)))


def _formula(account: Account, *, tied: bool) -> sp.Expr:
    """The largest length in closed form: linear in N_k for shared slices, a square root for intermediates."""
    if account.sharing is not None:
        _, shared = account.sharing
        return sp.floor(C_L2 / (shared.live * (shared.slice_bytes / N_k)))
    lives = _greatest(live.xreplace({N_q: N_k}) if tied else live for live in account.handed_on.values())
    formulas = list(dict.fromkeys(_solved(live) for live in lives if live.has(N_k)))
    least = formulas[0] if len(formulas) == 1 else sp.Min(*formulas, evaluate=False)
    fixed = [at_most(live, C_L2) for live in lives if not live.has(N_k)]  # fits or not, whatever the length is
    return cases((least, sp.And(*fixed)), (sp.Integer(0), sp.true)) if fixed else least


def _greatest(found: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Of *found* those that no other one contains term by term: all symbols are positive."""
    terms = {live: sp.expand(live).as_coefficients_dict() for live in found}

    def within(small: sp.Expr, big: sp.Expr) -> bool:
        return small != big and all(0 <= n <= terms[big].get(term, 0) for term, n in terms[small].items())

    return [live for live in terms if not any(within(live, other) for other in terms)]


def _solved(live: sp.Expr) -> sp.Expr:
    """The largest N_k with ``a N_k^2 + c N_k + e <= C_L2``, where *live* is that polynomial."""
    polynomial = sp.expand(live)
    a, c, e = (polynomial.coeff(N_k, power) for power in (2, 1, 0))
    if a == 0:
        return sp.floor((C_L2 - e) / c)
    return sp.floor((sp.sqrt(a * (C_L2 - e) + (c / 2) ** 2) - c / 2) / a)


def _largest(fits: Callable[[int], bool], *, scan: int | None) -> int | None:
    """The last length before the first that does not fit; ``None`` when every length fits.

    What must fit is (slices live) x (bytes a slice). Bytes grow with the length. The live slices stay the same within one
    row tile and fall towards two over row tiles: where they vary, row tiles of *scan* rows are tried one after another.
    """
    top = 1
    while fits(top):
        top *= 2
        if top > _LONGEST:
            return None
    step = scan or top
    for tile in range(1, min(-(-top // step), _SCANNED_ROW_TILES) + 1):
        if not fits(tile * step):
            return last_that_holds(fits, (tile - 1) * step, tile * step)
    return last_that_holds(fits, 0, top)

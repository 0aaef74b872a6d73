"""Where one schedule's work overtakes another's: the length, or the number of queries, at which both run as many FLOP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import UnboundError
from derive.exact import Number, value
from derive.flops import Convention, Pipe, flops
from derive.symbols import B, N, N_k, N_q
from outputs.layout import Section
from outputs.notation import put, text, tidy
from outputs.quantities import significant

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation


@dataclass(frozen=True)
class Trade:
    """Two schedules that run as many matmul FLOP, every pair of query and key counted, where a size has one value.

    Attributes:
        below, above: names of the schedules that run fewer FLOP on either side of it, where it is a number; else the two.
        symbol: the size.
        at: its value, in the other sizes.
        number: the same as a number, where they have one.
        limit: what *at* comes to as the keys grow many, where that is something else.
    """

    below: str
    above: str
    symbol: sp.Symbol
    at: sp.Expr
    number: Number | None
    limit: sp.Expr | None


def trades(answer: Explanation) -> list[Trade]:
    """Every pair of schedules of *answer* whose FLOP cross once, by size: N, or N_q and N_k, and B."""
    pairs = [(a, b) for n, a in enumerate(answer.accounts) for b in answer.accounts[n + 1 :]]
    found = (_trade(answer, a, b, symbol) for a, b in pairs for symbol in (N, N_q, N_k, B))
    return [trade for trade in found if trade is not None]


def _trade(answer: Explanation, first: Account, other: Account, symbol: sp.Symbol) -> Trade | None:
    """Where *first* and *other* run as many FLOP in *symbol*; ``None`` where they do not cross just once."""
    counts = [flops(a.derivation.schedule.graph, Convention.DENSE)[Pipe.MMA].amount for a in (first, other)]
    difference = sp.factor(put(sp.expand(counts[0] - counts[1]), answer.shown))
    at = _crossing(difference, symbol)
    if at is None:
        return None
    values = {name: n for name, n in first.values.items() if name != symbol.name}
    if "N_k" in first.values and symbol != N:
        values[N.name] = first.values["N_k"]
    at = _with_positive_denominator(at, values)
    number = _number(at, values)
    below, above = first.name, other.name
    if number is not None:
        more = _number(difference, {**values, symbol.name: int(number) + 1})
        if number <= 0 or more is None:
            return None
        below, above = (below, above) if more > 0 else (above, below)
    return Trade(below, above, symbol, at, number, _many_keys(at) if symbol in (N_q, B) else None)


def _crossing(difference: sp.Expr, symbol: sp.Symbol) -> sp.Expr | None:
    """The one positive root of a difference of counts in *symbol*, where that is plain to see."""
    if not difference.has(symbol):
        return None
    roots = []
    for factor, _ in sp.factor_list(sp.fraction(difference)[0], symbol)[1]:
        poly = sp.Poly(factor, symbol)
        if factor == symbol:
            continue
        if poly.degree() != 1:
            return None
        roots.append(sp.factor(-poly.coeff_monomial(1) / poly.coeff_monomial(symbol)))
    found = [root for root in roots if root.is_nonpositive is not True]
    return found[0] if len(found) == 1 else None


def _with_positive_denominator(at: sp.Expr, values: dict[str, Number]) -> sp.Expr:
    """*at* with its minus sign, if it has one in each half, in neither."""
    numerator, denominator = sp.fraction(at)
    negative = _number(denominator, values)
    turn = negative < 0 if negative is not None else sp.expand(numerator).could_extract_minus_sign()
    return -sp.expand(numerator) / -sp.expand(denominator) if turn else at


def _many_keys(at: sp.Expr) -> sp.Expr | None:
    """What a ratio of polynomials comes to as N_k grows; ``None`` where it has no limit or lacks N_k."""
    numerator, denominator = (sp.Poly(part, N_k) for part in sp.fraction(at))
    if numerator.degree() != denominator.degree() or numerator.degree() < 1:
        return None
    return sp.expand(numerator.LC()) / sp.expand(denominator.LC())


def _number(amount: sp.Expr, values: dict[str, Number]) -> Number | None:
    try:
        return value(amount, values)
    except UnboundError:
        return None


def where_they_cross(answer: Explanation) -> Section | None:
    """The crossings in words; ``None`` when there are none."""
    lines = [_line(answer, trade) for trade in trades(answer)]
    return Section("where the matmul FLOP of two schedules cross (every pair counted)", lines) if lines else None


def _line(answer: Explanation, trade: Trade) -> str:
    name, at = text(trade.symbol), text(tidy(put(trade.at, answer.shown)))
    line = f"{trade.below} = {trade.above} at {name} = {at}"
    if trade.number is not None:
        line = f"{trade.below} runs fewer while {name} < {at} = {significant(trade.number)}, {trade.above} beyond"
    if trade.limit is not None:
        line += f"; with many keys {name} = {text(tidy(put(trade.limit, answer.shown)))}"
    return line

r"""Where a count that first falls and then rises in one size is least, in closed form.

A posynomial  sum_i c_i x^{p_i}  with positive c_i is convex in log x. With both falling (p < 0) and rising (p > 0) terms it has
exactly one stationary point, its least value, where

    sum_{p > 0} p c x^p   =   sum_{p < 0} |p| c x^p.

One power on each side gives  x = (|p_-| c_- / (p_+ c_+))^{1/(p_+ - p_-)}: for 1/x and x, the square root of their ratio.

Source: Boyd, Kim, Vandenberghe & Hassibi 2007, A tutorial on geometric programming, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True, slots=True)
class Least:
    """Where a count is least in one size.

    Attributes:
        symbol: the size.
        falls: its falling terms, each times the size of its power.
        rises: its rising terms, each times its power; the count is least where the two are equal.
        point: the size there in closed form; ``None`` where more than one power stands on a side.
    """

    symbol: sp.Symbol
    falls: sp.Expr
    rises: sp.Expr
    point: sp.Expr | None

    def number(self, values: Mapping[sp.Symbol, sp.Expr]) -> float | None:
        """The size at *values*, found by bisection where there is no closed form; ``None`` while another symbol is open."""
        if self.point is not None:
            found = self.point.subs(values)
            return None if found.free_symbols else float(found)
        gap = (self.rises - self.falls).subs(values)
        if gap.free_symbols != {self.symbol}:
            return None
        low, high = sp.Integer(1), sp.Integer(1)
        while gap.subs(self.symbol, low) > 0:
            low /= 2
        while gap.subs(self.symbol, high) < 0:
            high *= 2
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if gap.subs(self.symbol, middle) < 0 else (low, middle)
        return float((low + high) / 2)


_HALVINGS = 60


def least(amount: sp.Expr, symbol: sp.Symbol) -> Least | None:
    """Where *amount* is least in *symbol*.

    Returns:
        ``None`` where it does not first fall and then rise, or is no posynomial in *symbol* (a rounded count, cases, a sum).
    """
    if amount.has(sp.Sum):  # of which it is not known whether it is positive; SymPy takes seconds to say so
        return None
    by_power: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(amount)):
        factor, rest = term.as_independent(symbol, as_Add=False)
        base, power = rest.as_base_exp() if rest != 1 else (symbol, sp.Integer(0))
        if base != symbol or not power.is_Rational or not factor.is_positive:
            return None
        by_power[power] = by_power.get(power, sp.Integer(0)) + factor
    falling = {p: c for p, c in by_power.items() if p < 0}
    rising = {p: c for p, c in by_power.items() if p > 0}
    if not falling or not rising:
        return None
    falls = sp.Add(*(-p * c * symbol**p for p, c in falling.items()))
    rises = sp.Add(*(p * c * symbol**p for p, c in rising.items()))
    point = None
    if len(falling) == len(rising) == 1:
        ((down, a),), ((up, c),) = falling.items(), rising.items()
        point = sp.factor(-down * a / (up * c)) ** (1 / (up - down))
    return Least(symbol, falls, rises, point)

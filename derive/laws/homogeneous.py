"""Whether scaling a symbol by t multiplies an amount by t^e whatever the rest is: found on the tree, nothing expanded.

Products add their degrees, sums and extremes need one degree for all members, a rounding none. A case distinction keeps its
degree where scaling leaves each of its conditions as it is: both sides of degree 1, say.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

import sympy as sp

ZERO = Fraction(0)


@lru_cache(maxsize=2**14)
def degree(amount: sp.Basic, symbol: sp.Symbol) -> Fraction | None:
    """The degree of *amount* in *symbol*; ``None`` where it has none."""
    if amount.is_Symbol or not amount.args:
        return Fraction(int(amount == symbol))
    if amount.func is sp.Sum:
        ends = [degree(end, symbol) for end in amount.args[1].args[1:]]
        return degree(amount.args[0], symbol) if ends == [ZERO, ZERO] and len(amount.args) == 2 else None
    if isinstance(amount, sp.Piecewise):
        if not all(_is_kept(condition, symbol) for _, condition in amount.args):
            return None
        return _one(degree(a, symbol) for a, _ in amount.args if a != 0)
    parts = [degree(a, symbol) for a in amount.args if a != 0 or amount.func not in (sp.Add, sp.Min, sp.Max)]
    if set(parts) == {ZERO}:
        return ZERO
    if amount.is_Mul:
        return None if None in parts else sum((p for p in parts if p is not None), ZERO)
    if amount.is_Pow and amount.exp.is_Rational and parts[0] is not None:
        return parts[0] * Fraction(int(amount.exp.p), int(amount.exp.q))
    return _one(parts) if amount.is_Add or amount.func in (sp.Min, sp.Max) else None


def _is_kept(condition: sp.Basic, symbol: sp.Symbol) -> bool:
    """Whether scaling *symbol* never changes *condition*."""
    if not condition.args:
        return True
    if isinstance(condition, sp.core.relational.Relational):
        sides = [degree(side, symbol) for side in condition.args if side != 0]
        return None not in sides and len(set(sides)) == 1
    return all(_is_kept(a, symbol) for a in condition.args)


def _one(degrees: Iterable[Fraction | None]) -> Fraction | None:
    found = set(degrees)
    return found.pop() if len(found) == 1 else None

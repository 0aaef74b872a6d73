"""Conditions and case distinctions, built without SymPy's search for simplifications.

``sp.Piecewise`` rewrites its conditions and ``<=`` asks for the sign of a difference; on the wave model's cases that took
seconds and simplified nothing. What is decided by numbers alone is decided here.
"""

from __future__ import annotations

import sympy as sp


def at_most(small: sp.Expr, big: sp.Expr) -> sp.Basic:
    """``small <= big``; true or false when both are numbers."""
    return sp.Le(small, big, evaluate=bool(small.is_Number and big.is_Number))


def cases(*branches: tuple[sp.Expr, sp.Basic]) -> sp.Expr:
    """The first amount whose condition holds; branches that never hold, or stand behind one that always does, are left out."""
    kept: list[tuple[sp.Expr, sp.Basic]] = []
    for amount, condition in branches:
        if condition == sp.false:
            continue
        if condition == sp.true and kept and kept[-1][0] == amount:
            kept.pop()
        kept.append((amount, condition))
        if condition == sp.true:
            break
    return kept[0][0] if kept[0][1] == sp.true else sp.Piecewise(*kept, evaluate=False)

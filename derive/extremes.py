"""Minimum and maximum of two extents, simplified by the sign of their difference alone.

SymPy's own constructors look for connections between all arguments by factoring; on the bounds of a mask that took most of
the time of a derivation and found nothing that the sign of the difference does not tell.
"""

from __future__ import annotations

import sympy as sp


def least(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    """The smaller of *a* and *b*, one of them where their difference has a known sign."""
    difference = sp.expand(a - b)
    if difference.is_nonnegative:
        return b
    return a if difference.is_nonpositive else sp.Min(a, b, evaluate=False)


def most(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    """The larger of *a* and *b*, one of them where their difference has a known sign."""
    difference = sp.expand(a - b)
    if difference.is_nonnegative:
        return a
    return b if difference.is_nonpositive else sp.Max(a, b, evaluate=False)

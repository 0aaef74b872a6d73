r"""Bounds of a mask, held between 0 and the number of keys and added up over queries, in closed form.

For a line of slope 1

    R(x) = sum_{t <= x} clamp(t, 0, K) = m (m + 1)/2 + K max(0, x - K),    m = clamp(x, 0, K)

so that a causal mask keeps R(c + N_q - 1) - R(c - 1) pairs, exactly, whichever side is longer. A stair is a line held at
multiples of C, as chunks and packed sequences make it.
"""

from __future__ import annotations

from itertools import pairwise

import sympy as sp

from derive.extremes import down, least, most, up
from derive.steps import Steps
from derive.symbols import ROW

ZERO = sp.Integer(0)


def is_line(bound: sp.Expr) -> bool:
    """Whether a bound rises by one a query."""
    return not sp.expand(bound - ROW).has(ROW)


def clamp(x: sp.Expr, top: sp.Expr) -> sp.Expr:
    """*x* held between 0 and *top*."""
    return most(least(sp.expand(x), top), ZERO)


def clamped(line: sp.Expr, top: sp.Expr, since: sp.Expr, until: sp.Expr) -> sp.Expr:
    """``clamp(line, 0, top)`` summed over the queries from *since* to *until* - 1."""
    offset = sp.expand(line - ROW)
    return _clamped_prefix(offset + until - 1, top) - _clamped_prefix(offset + since - 1, top)


def _clamped_prefix(x: sp.Expr, top: sp.Expr) -> sp.Expr:
    """``sum_{t <= x} clamp(t, 0, top)``."""
    x = sp.expand(x)
    m = clamp(x, top)
    return m * (m + 1) / 2 + top * most(x - top, ZERO)


def stair_of(bound: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """(C, a) where a bound is ``C floor((q + a)/C)``: a line held at multiples of C."""
    rounded = next((f for f in sp.Mul.make_args(bound) if f.func is sp.floor), None)
    if rounded is None:
        return None
    size = bound / rounded
    line = sp.expand(rounded.args[0] * size)
    return None if size.has(ROW) or not is_line(line) else (size, sp.expand(line - ROW))


def stairs(x: sp.Expr, size: sp.Expr, top: sp.Expr) -> sp.Expr:
    """``sum_{t <= x} clamp(C floor(t/C), 0, top)``: the stair passes *top* at the first multiple of C that is not below it."""
    passes = size * up(top / size)
    through = sp.expand(x + 1) == top  # the stair ends where the keys do, and passes nothing
    y = top if through else clamp(x + 1, passes)
    whole = down(y / size)
    beyond = ZERO if through else top * most(x + 1 - passes, ZERO)
    return size**2 * whole * (whole - 1) / 2 + size * whole * (y - size * whole) + beyond


def steps_of(bound: sp.Expr) -> Steps | None:
    """The step function of a bound that is one and a constant."""
    found = next((term for term in sp.Add.make_args(bound) if isinstance(term, Steps)), None)
    return None if found is None or (bound - found).has(ROW) else found


def stepped(bound: Steps, until: sp.Expr) -> sp.Expr:
    """A step function of the query summed over the first *until* of them, its last step being the last one reached."""
    runs = bound.runs
    whole = sum(value * (end - start) for (start, value), (end, _) in pairwise(runs))
    start, value = runs[-1]
    return whole + value * (until - start)

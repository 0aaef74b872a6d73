r"""Leading constants: the number in front of a class's monomial, at the best tiles and at a paper's.

Where one monomial leads, only some terms of the count and of the footprint matter: those that are as large as it, and those
that fill fast memory, at tiles that leave every other term smaller. What is left is a geometric program. When its dual has one
feasible point (no degree of difficulty) the minimum is, exactly,

    K = prod_i (c_i / w_i)^{w_i}  prod_j (f_j L / v_j)^{v_j},    L = sum_j v_j,

with w_i the dual weights of the traffic terms c_i and v_j those of the footprint terms f_j;
when every tile is as large or as small as it can be, K is the sum of the c_i.

Source: Duffin, Peterson & Zener 1967, Geometric Programming, chapter 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import sympy as sp

from derive.growth.linear import ZERO, Vector, dot
from derive.growth.parameters import Exponents, Parameters
from derive.growth.posynomial import Term


def best_constant(
    parameters: Parameters,
    lead: Vector,
    middle: Sequence[int],
    sizes: Mapping[sp.Symbol, Fraction],
    extents: Mapping[sp.Symbol, Exponents],
    traffic: Sequence[Term],
    footprint: Sequence[Term],
) -> sp.Expr | None:
    """The number in front of *lead* at the best tiles; ``None`` where it has no closed form of this kind.

    Args:
        parameters: what the forms speak of.
        lead: the monomial.
        middle: a point inside the region where it leads.
        sizes: logarithms of tiles that reach it there and leave smaller what they can.
        extents: the largest value of each tile.
        traffic: signed terms of the count, ceilings dropped.
        footprint: terms of the footprint; their sum is at most M.
    """
    at = [Fraction(x) for x in middle]

    def size(exponents: Exponents) -> Fraction:
        return dot(parameters.form(exponents), at) + sum((x * exponents.get(t, ZERO) for t, x in sizes.items()), ZERO)

    goal = dot(lead, at)
    counted = [t for t in traffic if size(t.exponents) == goal]
    full = [t for t in footprint if size(t.exponents) == at[_position(parameters, "M")]]
    used = {tile for term in (*counted, *full) for tile in term.exponents}
    free = [t for t in sizes if 0 < sizes[t] < size(extents[t]) and t in used]
    if not free:
        return sp.Add(*(t.coefficient for t in counted))
    if any(t.coefficient < 0 for t in (*counted, *full)):
        return None
    rows = [[t.exponents.get(tile, ZERO) for t in (*counted, *full)] for tile in free]
    rows.append([Fraction(int(n < len(counted))) for n in range(len(counted) + len(full))])
    weights = _only_solution(rows, [ZERO] * len(free) + [Fraction(1)])
    if weights is None or any(w <= 0 for w in weights):
        return None
    v = weights[len(counted) :]
    share = sp.Rational(sum(v, ZERO))
    constant = sp.Integer(1)
    for term, w in zip(counted, weights, strict=False):
        constant *= (term.coefficient / sp.Rational(w)) ** sp.Rational(w)
    for term, w in zip(full, v, strict=True):
        constant *= (term.coefficient * share / sp.Rational(w)) ** sp.Rational(w)
    return constant


def constant_at(lead: Exponents, tiles: Mapping[sp.Symbol, sp.Expr], traffic: Sequence[Term]) -> sp.Expr | None:
    """The number in front of *lead* at given *tiles*, roundings dropped; ``None`` where no term of the count is as large."""
    total = sp.Integer(0)
    for term in traffic:
        expression = term.coefficient
        for symbol, exponent in term.exponents.items():
            expression *= tiles.get(symbol, symbol) ** sp.Rational(exponent)
        coefficient, rest = sp.expand(expression).as_coeff_Mul()
        powers = rest.as_powers_dict()
        if any(base != 1 and not base.is_Symbol for base in powers):
            return None
        if {s: Fraction(int(e.p), int(e.q)) for s, e in powers.items() if s != 1 and e != 0} == dict(lead):
            total += coefficient
    return total or None


def _position(parameters: Parameters, name: str) -> int:
    return next(n for n, s in enumerate(parameters.symbols) if s.name == name)


def _only_solution(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The solution of ``rows x = right`` when there is exactly one."""
    size = len(rows[0])
    work = [[*row, b] for row, b in zip(rows, right, strict=True)]
    for column in range(size):
        pivot = next((r for r in range(column, len(work)) if work[r][column]), None)
        if pivot is None:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        lead = work[column]
        work[column] = [x / lead[column] for x in lead]
        for r in range(len(work)):
            if r != column and (factor := work[r][column]):
                work[r] = [x - factor * y for x, y in zip(work[r], work[column], strict=True)]
    if any(row[-1] for row in work[size:]):
        return None
    return [row[-1] for row in work[:size]]

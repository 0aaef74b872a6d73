"""Why a monomial is left out of a class: what exceeds it, and by which conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from derive.growth.cone import Cone
from derive.growth.linear import ZERO, Optimum, Vector, minimise
from derive.growth.parameters import Condition, Parameters


@dataclass(frozen=True)
class Dominated:
    """A monomial, and the weighted geometric mean of others that is never below it.

    Attributes:
        monomial: what is left out.
        by: weight of each monomial that exceeds it; the weights sum to 1, and a mean is never above the sum.
        because: the conditions that make it so, each to a power; none when the two are the same throughout.
    """

    monomial: sp.Expr
    by: Mapping[sp.Expr, Fraction]
    because: tuple[tuple[Condition, Fraction], ...]


def dominated(parameters: Parameters, region: Cone, form: Vector, kept: Sequence[Vector]) -> Dominated:
    """The shortest argument that *form* never exceeds all of *kept* in *region*.

    Weights w of the kept forms and powers c of the region's conditions are non-negative with

        sum_f w_f f - form = sum_k c_k condition_k,      sum_f w_f = 1.

    Raises:
        ValueError: there is none, since *form* leads somewhere.
    """
    normals = [tuple(map(Fraction, n)) for n in region.normals]
    size = len(parameters.symbols)
    columns = [(*f, Fraction(1)) for f in kept] + [(*(-x for x in n), ZERO) for n in normals]
    target = (*form, Fraction(1))
    rows, rights = [], []
    for i in range(size + 1):
        for sign in (1, -1):
            rows.append([sign * column[i] for column in columns])
            rights.append((sign * target[i],))
    costs = [(Fraction(int(n >= len(kept))),) for n in range(len(columns))]
    found = minimise(costs, rows, rights, (Fraction(1),))
    if not isinstance(found, Optimum):
        raise ValueError(f"{parameters.monomial(form)} leads somewhere in the region")
    weights = [x[0] for x in found.point]
    by = {parameters.monomial(f): w for f, w in zip(kept, weights, strict=False) if w}
    powers = zip(region.normals, weights[len(kept) :], strict=True)
    return Dominated(parameters.monomial(form), by, tuple((parameters.condition(n), c) for n, c in powers if c))

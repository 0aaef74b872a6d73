"""Linear programs in exact rationals whose right-hand sides are linear forms in parameters: the dual simplex method.

    minimise  c.x   subject to   A x >= b(p),   x >= 0,   with c >= 0.

Pivots are chosen at one point p, but constants are carried as forms in p, so the answer is a formula: the optimum and each x
as a linear form, right wherever the same basis is. Costs are compared lexicographically, one vector of costs a variable: ties
in the first are broken by the second. Bland's rule ends every run.

Source: Chvatal 1983, Linear Programming, chapters 2 and 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Vector = tuple[Fraction, ...]
"""A linear form in the parameters, or a point of them."""
ZERO = Fraction(0)


def minus(a: Sequence[Fraction], b: Sequence[Fraction]) -> Vector:
    """The form of a quotient of monomials: their difference."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, slots=True)
class Optimum:
    """An optimal basis.

    Attributes:
        value: the optimum, as a form in the parameters.
        weights: the dual solution: how much of each row proves that nothing lies below ``value``.
        point: each variable, as a form in the parameters.
    """

    value: Vector
    weights: Vector
    point: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No x satisfies the rows at the point asked about.

    Attributes:
        needs: a form that must not be negative for any x to satisfy them.
        weights: the rows' weights that prove it (Farkas).
    """

    needs: Vector
    weights: Vector


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    """The inner product."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), ZERO)


def minimise(
    costs: Sequence[Vector], rows: Sequence[Sequence[Fraction]], rights: Sequence[Vector], at: Sequence[Fraction]
) -> Optimum | Infeasible:
    """The optimal basis at the parameters *at*.

    Args:
        costs: non-negative costs of each variable, most important first.
        rows: coefficients of each variable in each row.
        rights: what each row must reach, as a form in the parameters.
        at: the parameters.
    """
    return _Dictionary(costs, rows, rights).solved(at)


class _Dictionary:
    """Basic variables in terms of the others: ``basic_i = constant_i + sum_j entry_ij other_j``; slacks are basic at first."""

    def __init__(self, costs: Sequence[Vector], rows: Sequence[Sequence[Fraction]], rights: Sequence[Vector]) -> None:
        self.variables, self.levels = len(costs), len(costs[0])
        self.others = list(range(self.variables))
        self.basics = [self.variables + i for i in range(len(rows))]
        self.constants = [[-x for x in right] for right in rights]
        self.entries = [list(row) for row in rows]
        self.costs = [[cost[level] for cost in costs] for level in range(self.levels)]
        self.value = [ZERO] * len(rights[0])

    def solved(self, at: Sequence[Fraction]) -> Optimum | Infeasible:
        while True:
            negative = [i for i, c in enumerate(self.constants) if dot(c, at) < 0]
            if not negative:
                return self._optimum()
            leaving = min(negative, key=self.basics.__getitem__)
            entering = self._entering(leaving)
            if entering is None:
                return self._infeasible(leaving)
            self._pivot(leaving, entering)

    def _entering(self, leaving: int) -> int | None:
        row = self.entries[leaving]
        able = [j for j, entry in enumerate(row) if entry > 0]
        return min(able, key=lambda j: (*(c[j] / row[j] for c in self.costs), self.others[j]), default=None)

    def _pivot(self, i: int, j: int) -> None:
        """Swap basic *i* and other *j*."""
        row, entry, constant = self.entries[i], self.entries[i][j], self.constants[i]
        solved = [-x / entry for x in row]
        solved[j] = 1 / entry
        shift = [-x / entry for x in constant]
        for k, other in enumerate(self.entries):
            if k != i and (factor := other[j]):
                other[j] = ZERO
                self.entries[k] = [x + factor * y if y else x for x, y in zip(other, solved, strict=True)]
                self.constants[k] = [x + factor * y for x, y in zip(self.constants[k], shift, strict=True)]
        self.entries[i], self.constants[i] = solved, shift
        for level, costs in enumerate(self.costs):
            if factor := costs[j]:
                costs[j] = ZERO
                self.costs[level] = [x + factor * y for x, y in zip(costs, solved, strict=True)]
                if level == 0:
                    self.value = [x + factor * y for x, y in zip(self.value, shift, strict=True)]
        self.basics[i], self.others[j] = self.others[j], self.basics[i]

    def _optimum(self) -> Optimum:
        weights = [ZERO] * len(self.basics)
        for j, other in enumerate(self.others):
            if other >= self.variables:
                weights[other - self.variables] = self.costs[0][j]
        point: list[Vector] = [tuple([ZERO] * len(self.value))] * self.variables
        for i, basic in enumerate(self.basics):
            if basic < self.variables:
                point[basic] = tuple(self.constants[i])
        return Optimum(tuple(self.value), tuple(weights), tuple(point))

    def _infeasible(self, i: int) -> Infeasible:
        weights = [ZERO] * len(self.basics)
        if self.basics[i] >= self.variables:
            weights[self.basics[i] - self.variables] = Fraction(1)
        for j, other in enumerate(self.others):
            if other >= self.variables:
                weights[other - self.variables] = -self.entries[i][j]
        return Infeasible(tuple(self.constants[i]), tuple(weights))

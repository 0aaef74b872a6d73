"""Linear programs in exact rationals whose right-hand sides are linear forms in parameters: the dual simplex method.

    minimise  c.x   subject to   A x >= b(p),   x >= 0,   with c >= 0.

Pivots are chosen at one point p, but constants are carried as forms in p, so the answer is a formula: the optimum and each x
as a linear form, right wherever the same basis is. Costs are compared lexicographically, one vector of costs a variable: ties
in the first are broken by the second. Bland's rule ends every run.

Arithmetic is in whole numbers over one denominator, the last pivot: every division by the one before it is exact.

Source: Chvatal 1983, Linear Programming, chapters 2 and 10; Edmonds 1967, Systems of distinct representatives and linear
algebra (whole pivots).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

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
    return Rows(tuple(map(tuple, rows)), tuple(rights)).minimise(costs, at)


@dataclass(frozen=True)
class Rows:
    """``A x >= b(p)``, to be asked about at many points and costs.

    Attributes:
        rows, rights: as ``minimise`` takes them.
    """

    rows: tuple[Vector, ...]
    rights: tuple[Vector, ...]

    def minimise(self, costs: Sequence[Vector], at: Sequence[Fraction | int]) -> Optimum | Infeasible:
        """The optimal basis at the parameters *at*, for *costs* as ``minimise`` takes them."""
        return _Dictionary(self, costs, at).solved()

    @cached_property
    def whole(self) -> tuple[tuple[int, list[int], list[int]], ...]:
        """Of each row the number that makes it whole, its coefficients times that, and minus its right side times that."""
        found = []
        for row, right in zip(self.rows, self.rights, strict=True):
            scale = _denominator((*row, *right))
            found.append((scale, _scaled(row, scale), [-x for x in _scaled(right, scale)]))
        return tuple(found)


def _denominator(numbers: Sequence[Fraction | int]) -> int:
    return lcm(*(x.denominator for x in numbers))


def _scaled(numbers: Sequence[Fraction | int], scale: int) -> list[int]:
    return [x.numerator * (scale // x.denominator) for x in numbers]


class _Dictionary:
    """Basic variables in terms of the others: ``basic_i = constant_i + sum_j entry_ij other_j``; slacks are basic at first.

    A row of ``table`` holds the entries, the constant's form and the constant at the point asked about, times ``denominator``;
    below the rows of the basic variables stand those of the costs.
    """

    def __init__(self, asked: Rows, costs: Sequence[Vector], at: Sequence[Fraction | int]) -> None:
        self.variables, self.size = len(costs), len(at)
        self.others = list(range(self.variables))
        self.basics = [self.variables + i for i in range(len(asked.whole))]
        point = _scaled(at, _denominator(at))
        self.table = [
            [*row, *constant, sum(x * y for x, y in zip(constant, point, strict=True))]
            for _, row, constant in asked.whole
        ]
        levels = list(zip(*costs, strict=True))
        self.cost_scales = [_denominator(level) for level in levels]
        nothing = [0] * (self.size + 1)
        self.table += [[*_scaled(level, n), *nothing] for level, n in zip(levels, self.cost_scales, strict=True)]
        self.scales = [1] * self.variables + [scale for scale, _, _ in asked.whole]  # of a slack, that of its row
        self.denominator = 1

    def solved(self) -> Optimum | Infeasible:
        while True:
            negative = [i for i in range(len(self.basics)) if self.table[i][-1] < 0]
            if not negative:
                return self._optimum()
            leaving = min(negative, key=self.basics.__getitem__)
            entering = self._entering(leaving)
            if entering is None:
                return self._infeasible(leaving)
            self._pivot(leaving, entering)

    def _entering(self, leaving: int) -> int | None:
        row, costs = self.table[leaving], self.table[len(self.basics) :]
        best: int | None = None
        for j in range(self.variables):
            if row[j] > 0 and (best is None or self._is_cheaper(j, best, row, costs)):
                best = j
        return best

    def _is_cheaper(self, j: int, other: int, row: list[int], costs: list[list[int]]) -> bool:
        """Whether *j* costs less than *other* for what it gains in *row*; of equal ones, whether it has the smaller number."""
        for cost in costs:
            left, right = cost[j] * row[other], cost[other] * row[j]
            if left != right:
                return left < right
        return self.others[j] < self.others[other]

    def _pivot(self, i: int, j: int) -> None:
        """Swap basic *i* and other *j*."""
        row, last = self.table[i], self.denominator
        entry = row[j]
        for k, other in enumerate(self.table):
            if k == i:
                continue
            if factor := other[j]:
                self.table[k] = [(x * entry - factor * y) // last for x, y in zip(other, row, strict=True)]
                self.table[k][j] = factor
            elif entry != last:
                self.table[k] = [x * entry // last for x in other]
        self.table[i] = [-x for x in row]
        self.table[i][j] = last
        self.denominator = entry
        self.basics[i], self.others[j] = self.others[j], self.basics[i]

    def _form(self, row: list[int], scale: int) -> Vector:
        """The form in a row, of what was multiplied by *scale*."""
        return tuple(Fraction(x, self.denominator * scale) for x in row[self.variables : -1])

    def _optimum(self) -> Optimum:
        cost, scale = self.table[len(self.basics)], self.cost_scales[0]
        weights = [ZERO] * len(self.basics)
        for j, other in enumerate(self.others):
            if other >= self.variables:
                weights[other - self.variables] = Fraction(cost[j] * self.scales[other], self.denominator * scale)
        point: list[Vector] = [(ZERO,) * self.size] * self.variables
        for i, basic in enumerate(self.basics):
            if basic < self.variables:
                point[basic] = self._form(self.table[i], 1)
        return Optimum(self._form(cost, scale), tuple(weights), tuple(point))

    def _infeasible(self, i: int) -> Infeasible:
        weights = [ZERO] * len(self.basics)
        scale = self.scales[self.basics[i]]
        if self.basics[i] >= self.variables:
            weights[self.basics[i] - self.variables] = Fraction(1)
        for j, other in enumerate(self.others):
            if other >= self.variables:
                amount = -self.table[i][j] * self.scales[other]
                weights[other - self.variables] = Fraction(amount, self.denominator * scale)
        return Infeasible(self._form(self.table[i], scale), tuple(weights))

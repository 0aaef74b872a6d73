"""All terms of a sum at once, or all values along a symbol: arrays of whole numbers over one denominator, exact, or refused.

What could leave 64 bits is refused before it is computed: each array carries a bound on its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from derive.exact import Gcd
from derive.pieces import NoFastSumError
from derive.same import Same
from derive.steps import Steps
from derive.substitution import symbols_in

Whole = npt.NDArray[np.int64]
MOST_ELEMENTS = 2**21
"""Of one array, with an axis for each sum in a sum."""
MOST_DIVISORS = 16
"""Of one array that is divided by, which are brought to one denominator."""
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Terms:
    """``numbers / below``, *below* positive; none of *numbers* is beyond *bound* either way."""

    numbers: Whole
    below: int
    bound: int

    @staticmethod
    def of(number: int | Fraction) -> Terms:
        """One number for all terms."""
        exact = Fraction(number)
        return _checked(lambda: np.array(exact.numerator, dtype=np.int64), exact.denominator, abs(exact.numerator))

    @staticmethod
    def along(numbers: Iterable[int | Fraction]) -> Terms:
        """One number for each place of an axis."""
        exact = [Fraction(n) for n in numbers]
        below = lcm(*(n.denominator for n in exact))
        whole = [int(n * below) for n in exact]
        return _checked(lambda: np.array(whole, dtype=np.int64), below, max(map(abs, whole)))

    def over(self, below: int) -> Terms:
        """The same over a multiple of its denominator."""
        by = below // self.below
        return self if by == 1 else _checked(lambda: self.numbers * by, below, self.bound * by)


@dataclass(frozen=True)
class Arrays:
    """How the parts of a summand become arrays.

    Attributes:
        constant: the value of a part in which no index stands.
        indices: the terms of each index, each along an axis of its own, the innermost sum's first.
        met: the terms of parts that were met before.
    """

    constant: Callable[[Any], int | Fraction]
    indices: Mapping[Any, Terms]
    met: dict[Any, Terms] = field(default_factory=dict)

    def total(self, summand: Any, index: Any, first: int, last: int) -> Fraction:
        """The sum of *summand* over ``index = first .. last``.

        Raises:
            NoFastSumError: see there.
        """
        found = self._added(summand, index, first, last)
        return Fraction(int(found.numbers), found.below)

    def values(self, e: Any, count: int) -> list[Fraction]:
        """The values of *e* along the one axis of all indices, *count* of them.

        Raises:
            NoFastSumError: see there.
        """
        found = self.of(e)
        return [Fraction(int(n), found.below) for n in np.broadcast_to(found.numbers, (count,))]

    def _added(
        self, summand: Any, index: Any, first: int, last: int, within: tuple[Whole, Whole] | None = None
    ) -> Terms:
        """The sum over one index; *within* says which of its values count, where ends move with an index outside."""
        shape = np.broadcast_shapes(*(t.numbers.shape for t in self.indices.values()))
        count = last - first + 1
        if count * int(np.prod(shape)) > MOST_ELEMENTS:
            raise NoFastSumError
        axis = np.arange(first, last + 1, dtype=np.int64).reshape(count, *(1 for _ in shape))
        terms = Arrays(self.constant, {**self.indices, index: Terms(axis, 1, max(abs(first), abs(last)))}).of(summand)
        numbers = np.broadcast_to(terms.numbers, (count, *shape))
        if within is not None:
            ends = [np.broadcast_to(end, shape) for end in within]
            numbers = np.where((axis >= ends[0]) & (axis <= ends[1]), numbers, 0)
        return _checked(lambda: numbers.sum(axis=0), terms.below, terms.bound * count)

    def of(self, e: Any) -> Terms:
        """The terms of a part, which is looked at once however often it stands in the summand."""
        found = self.met.get(e)
        if found is None:
            found = self.met[e] = self._made(e)
        return found

    def _made(self, e: Any) -> Terms:
        if e in self.indices:
            return self.indices[e]
        if not symbols_in(e).intersection(self.indices):
            return Terms.of(self.constant(e))
        if isinstance(e, sp.Sum):
            return self._within(e)
        if e.is_Pow:
            return self._power(e)
        if isinstance(e, sp.Piecewise):
            return self._cases(e)
        if isinstance(e, Steps):
            return self._steps(e)
        rule = _RULES.get(e.func)
        if rule is None:
            raise NoFastSumError
        return rule([self.of(a) for a in e.args])

    def _within(self, e: Any) -> Terms:
        summand, *more, (index, low, high) = e.args
        ends = [_floor([self.of(low)]), _floor([self.of(high)])]
        first, last = int(ends[0].numbers.min()), int(ends[1].numbers.max())
        if last < first:
            return Terms.of(0)
        return self._added(
            sp.Sum(summand, *more) if more else summand, index, first, last, (ends[0].numbers, ends[1].numbers)
        )

    def _power(self, e: Any) -> Terms:
        if not e.exp.is_Integer or e.exp == 0:
            raise NoFastSumError
        base = self.of(e.base)
        return reduce(_product, [base if e.exp > 0 else _reciprocal(base)] * abs(int(e.exp)))

    def _cases(self, e: Any) -> Terms:
        amounts = [self.of(a) for a, _ in e.args]
        below = lcm(*(t.below for t in amounts))
        amounts = [t.over(below) for t in amounts]
        if e.args[-1][1] != sp.true:
            raise NoFastSumError
        found = amounts[-1].numbers
        for terms, (_, condition) in reversed(list(zip(amounts, e.args, strict=True))[:-1]):
            found = np.where(self.of(condition).numbers != 0, terms.numbers, found)
        return Terms(found, below, max(t.bound for t in amounts))

    def _steps(self, e: Any) -> Terms:
        at = _floor([self.of(e.args[0])]).numbers
        starts, values = (np.array(column, dtype=np.int64) for column in zip(*e.runs, strict=True))
        place = np.maximum(np.searchsorted(starts, at, side="right") - 1, 0)
        return Terms(values[place], 1, int(np.abs(values).max()))


def _checked(numbers: Callable[[], Any], below: int, bound: int) -> Terms:
    """Terms whose numbers are computed once their bound is seen to fit."""
    if bound >= _LARGEST or below >= _LARGEST:
        raise NoFastSumError
    return Terms(numbers(), below, bound)


def _alike(parts: list[Terms]) -> list[Terms]:
    below = lcm(*(p.below for p in parts))
    return [p.over(below) for p in parts]


def _plus(parts: list[Terms]) -> Terms:
    same = _alike(parts)
    return _checked(lambda: reduce(np.add, (p.numbers for p in same)), same[0].below, sum(p.bound for p in same))


def _times(parts: list[Terms]) -> Terms:
    found = parts[0]
    for part in parts[1:]:
        found = _product(found, part)
    return found


def _product(a: Terms, b: Terms) -> Terms:
    return _checked(lambda: a.numbers * b.numbers, a.below * b.below, a.bound * b.bound)


def _reciprocal(a: Terms) -> Terms:
    """One over each term, all over the least common multiple of them."""
    if a.numbers.size > MOST_DIVISORS or not a.numbers.all():
        raise NoFastSumError
    multiple = lcm(*(int(n) for n in a.numbers.flat))
    return _checked(lambda: np.array(multiple // a.numbers) * a.below, multiple, multiple * a.below)


def _floor(parts: list[Terms]) -> Terms:
    (one,) = parts
    return Terms(one.numbers // one.below, 1, one.bound // one.below + 1)


def _ceiling(parts: list[Terms]) -> Terms:
    (one,) = parts
    return Terms(-(-one.numbers // one.below), 1, one.bound // one.below + 1)


def _gcd(parts: list[Terms]) -> Terms:
    a, b = (_floor([p]) for p in parts)
    return Terms(np.gcd(a.numbers, b.numbers), 1, max(a.bound, b.bound))


def _extreme(choose: Any) -> Callable[[list[Terms]], Terms]:
    def found(parts: list[Terms]) -> Terms:
        same = _alike(parts)
        return Terms(reduce(choose, (p.numbers for p in same)), same[0].below, max(p.bound for p in same))

    return found


def _compared(compare: Any) -> Callable[[list[Terms]], Terms]:
    def found(parts: list[Terms]) -> Terms:
        left, right = _alike(parts)
        return Terms(compare(left.numbers, right.numbers).astype(np.int64), 1, 1)

    return found


_RULES: Mapping[Any, Callable[[list[Terms]], Terms]] = {
    sp.Add: _plus,
    sp.Mul: _times,
    sp.floor: _floor,
    Gcd: _gcd,
    sp.ceiling: _ceiling,
    sp.Min: _extreme(np.minimum),
    sp.Max: _extreme(np.maximum),
    Same: _compared(np.equal),
    sp.StrictLessThan: _compared(np.less),
    sp.LessThan: _compared(np.less_equal),
    sp.StrictGreaterThan: _compared(np.greater),
    sp.GreaterThan: _compared(np.greater_equal),
}

r"""Exact values of closed forms: integers stay integers, and a sum of 10^16 terms costs no more than one of 10.

A tile count such as ``sum_i ceil(min((i+1) B_r, N)/B_c)`` has no shorter closed form when the tiles do not divide. It is
cut into ranges on which every ``min`` and ``max`` has one winner; there it is a sum of ``floor((a i + b)/m)``, which the
Euclidean algorithm adds up in O(log m) steps.

Source: the floor-sum reduction is the one of Graham, Knuth & Patashnik, Concrete Mathematics, section 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor as floor_of
from math import gcd, lcm
from typing import Any

import sympy as sp

from derive.errors import DomainError, UnboundError
from derive.steps import Steps

Number = int | Fraction
Values = Mapping[str, Number]

MAX_DIRECT_TERMS = 20_000
"""Terms that are added one by one when a summand has no fast sum."""


def value(expression: sp.Basic, values: Values) -> Number:
    """The exact value of *expression* where each symbol has the value its name has in *values*.

    Returns:
        An ``int`` when the value is whole, else a ``Fraction``; 1 or 0 for a true or false condition.

    Raises:
        UnboundError: a symbol has no value.
        DomainError: a division by zero, an irrational power, or a sum with no fast form and too many terms.
    """
    return _whole(_evaluate(expression, values))


def holds(condition: sp.Basic, values: Values) -> bool:
    """Whether *condition* is true at *values*; raises as ``value`` does."""
    return bool(_evaluate(condition, values))


def _whole(number: Number) -> Number:
    """A fraction with denominator 1 as the integer it is."""
    return number.numerator if isinstance(number, Fraction) and number.denominator == 1 else number


def _evaluate(expression: Any, values: Values) -> Number:
    if expression.is_Symbol:
        try:
            return values[expression.name]
        except KeyError:
            raise UnboundError(f"{expression.name} has no value yet; give it as a number") from None
    if expression.is_Rational:
        return int(expression.p) if expression.q == 1 else Fraction(int(expression.p), int(expression.q))
    rule = _RULES.get(expression.func)
    if rule is None:
        raise DomainError(f"{expression} has no exact value: {expression.func.__name__} is not arithmetic on rationals")
    return rule(expression, values)


def _add(expression: Any, values: Values) -> Number:
    total: Number = 0
    for term in expression.args:
        total += _evaluate(term, values)
    return total


def _multiply(expression: Any, values: Values) -> Number:
    product: Number = 1
    for factor in expression.args:
        product *= _evaluate(factor, values)
    return product


def _power(expression: Any, values: Values) -> Number:
    base, exponent = (_evaluate(a, values) for a in expression.args)
    if not isinstance(exponent, int):
        raise DomainError(f"{expression} has no exact value: the power {exponent} is not whole")
    if base == 0 and exponent < 0:
        raise DomainError(f"{expression} divides by zero")
    return Fraction(base) ** exponent if exponent < 0 else base**exponent


def _piecewise(expression: Any, values: Values) -> Number:
    for amount, condition in expression.args:
        if condition == sp.true or _evaluate(condition, values):
            return _evaluate(amount, values)
    raise DomainError(f"{expression} holds in none of its cases here")


def _compare(compare: Callable[[Number, Number], bool]) -> Callable[[Any, Values], Number]:
    return lambda e, values: int(compare(_evaluate(e.args[0], values), _evaluate(e.args[1], values)))


def _floor(expression: Any, values: Values) -> Number:
    return floor_of(_evaluate(expression.args[0], values))


def _ceiling(expression: Any, values: Values) -> Number:
    return -floor_of(-_evaluate(expression.args[0], values))


def _mod(expression: Any, values: Values) -> Number:
    a, n = (_evaluate(x, values) for x in expression.args)
    return a - n * floor_of(Fraction(a) / n)


def _steps(expression: Any, values: Values) -> Number:
    x = _evaluate(expression.args[0], values)
    return int(max((run for run in expression.runs if run[0] <= x), default=expression.runs[0])[1])


def _gcd(expression: Any, values: Values) -> Number:
    return gcd(*(int(_evaluate(x, values)) for x in expression.args))


class Gcd(sp.Function):  # type: ignore[misc]
    """The greatest common divisor of two positive integers, left symbolic: ``sympy.gcd`` reads symbols as polynomials."""

    nargs = 2
    is_integer = True
    is_positive = True

    @classmethod
    def eval(cls, a: Any, b: Any) -> Any:
        """A number once both are numbers."""
        if a.is_Integer and b.is_Integer:
            return sp.igcd(a, b)
        return sp.Integer(1) if sp.Integer(1) in (a, b) else None


# --- sums -------------------------------------------------------------------------------------------------------------


def _sum(expression: Any, values: Values) -> Number:
    summand, (index, low, high) = expression.args[0], expression.args[1].args
    first, last = _evaluate(low, values), _evaluate(high, values)
    if last < first:
        return 0  # SymPy's own convention would make this minus the terms in between
    first, last = int(first), int(last)
    try:
        return sum((piece.total() for piece in _pieces(summand, _Variable(index), values, first, last)), 0)
    except NoFastSumError:
        pass
    try:
        return _by_residue(summand, index, values, first, last)
    except NoFastSumError as reason:
        if last - first >= MAX_DIRECT_TERMS:
            raise DomainError(f"a sum of {last - first + 1} terms has no fast exact value: {reason}") from None
        scope = dict(values)
        total: Number = 0
        for i in range(first, last + 1):
            scope[index.name] = i
            total += _evaluate(summand, scope)
        return total


def _by_residue(summand: Any, index: Any, values: Values, first: int, last: int) -> Number:
    """The sum over each residue i = p t + r apart, p a period of all floors: there every floor is a line in t.

    Raises:
        NoFastSumError: the period is no shorter than the sum, or the summand has other parts than lines and floors.
    """
    if summand.has(sp.Sum):
        raise NoFastSumError("a sum of sums")
    period = 1
    for rounded in summand.atoms(sp.floor, sp.ceiling):
        if index in rounded.free_symbols:
            argument = _pieces(rounded.args[0], _Variable(index), values, first, last)
            period = lcm(period, *(p.slope.denominator for p in argument))
            period = lcm(period, *(m * c.denominator for p in argument for c, _, _, m in p.floors))
    if period * 8 > last - first:
        raise NoFastSumError(f"a sum of period {period}")
    total: Number = 0
    for r in range(first, first + period):
        lines = _pieces(summand, _Variable(index, period, r), values, 0, (last - r) // period)
        total += sum((piece.total() for piece in lines), 0)
    return total


@dataclass(frozen=True, slots=True)
class _Variable:
    """The index of a sum, as ``step t + offset``."""

    index: Any
    step: int = 1
    offset: int = 0


class NoFastSumError(Exception):
    """The summand is not made of lines, floors and monotone bounds."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """``slope i + constant + sum of c * floor((a i + b)/m)`` on ``first <= i <= last``; *floors* holds (c, a, b, m)."""

    first: int
    last: int
    slope: Fraction
    constant: Fraction
    floors: tuple[tuple[Fraction, int, int, int], ...] = ()

    def at(self, i: int) -> Fraction:
        """Its value at *i*."""
        return self.slope * i + self.constant + sum(c * ((a * i + b) // m) for c, a, b, m in self.floors)

    def total(self) -> Fraction:
        """Its values added up over the whole range."""
        n = self.last - self.first + 1
        line = self.constant * n + self.slope * Fraction((self.first + self.last) * n, 2)
        return line + sum(c * floor_sum(n, m, a, a * self.first + b) for c, a, b, m in self.floors)

    def on(self, first: int, last: int) -> _Piece:
        return _Piece(first, last, self.slope, self.constant, self.floors)

    def scaled(self, by: Fraction) -> _Piece:
        floors = tuple((c * by, a, b, m) for c, a, b, m in self.floors)
        return _Piece(self.first, self.last, self.slope * by, self.constant * by, floors)

    def plus(self, other: _Piece) -> _Piece:
        return _Piece(
            self.first, self.last, self.slope + other.slope, self.constant + other.constant, self.floors + other.floors
        )

    def direction(self) -> int:
        """1 where it never falls, -1 where it never rises, 0 when constant.

        Raises:
            NoFastSumError: some parts rise and others fall.
        """
        signs = {(self.slope > 0) - (self.slope < 0)} | {((c * a) > 0) - ((c * a) < 0) for c, a, _, _ in self.floors}
        signs.discard(0)
        if len(signs) > 1:
            raise NoFastSumError("two parts of a bound move in opposite directions")
        return signs.pop() if signs else 0


def floor_sum(n: int, m: int, a: int, b: int) -> int:
    """``sum_{i=0}^{n-1} floor((a i + b)/m)``, exactly, for m > 0 and any integers a and b; O(log m) steps."""
    total = 0
    while n > 0:
        quotient, a = divmod(a, m)
        total += quotient * (n * (n - 1) // 2)
        quotient, b = divmod(b, m)
        total += quotient * n
        top = a * n + b
        if top < m:
            break
        n, b, m, a = top // m, top % m, a, m
    return total


def _pieces(e: Any, variable: _Variable, values: Values, first: int, last: int) -> list[_Piece]:
    """*e* as pieces in t that cover ``first..last`` in order."""
    index = variable.index
    if index not in e.free_symbols:
        return [_Piece(first, last, Fraction(0), Fraction(_evaluate(e, values)))]
    if e == index:
        return [_Piece(first, last, Fraction(variable.step), Fraction(variable.offset))]
    if e.is_Add:
        return _combine([_pieces(a, variable, values, first, last) for a in e.args], lambda parts: [_total(parts)])
    if e.is_Mul:
        moving = [a for a in e.args if index in a.free_symbols]
        if len(moving) != 1:
            raise NoFastSumError(f"{e} multiplies two terms that both change with {index}")
        factor = Fraction(_evaluate(e / moving[0], values))
        return [p.scaled(factor) for p in _pieces(moving[0], variable, values, first, last)]
    if e.func is sp.floor:
        return [_floored(p) for p in _pieces(e.args[0], variable, values, first, last)]
    if e.func is sp.ceiling:
        return [
            _floored(p.scaled(Fraction(-1))).scaled(Fraction(-1))
            for p in _pieces(e.args[0], variable, values, first, last)
        ]
    if e.func is Steps:
        return [s for p in _pieces(e.args[0], variable, values, first, last) for s in _stepped(p, e.runs)]
    if e.func in (sp.Min, sp.Max):
        keep_larger = e.func is sp.Max
        found = _pieces(e.args[0], variable, values, first, last)
        for argument in e.args[1:]:
            both = [found, _pieces(argument, variable, values, first, last)]
            found = _combine(both, lambda parts: _winner(parts[0], parts[1], keep_larger))
        return found
    raise NoFastSumError(f"{e.func.__name__} of {index}")


def _total(parts: list[_Piece]) -> _Piece:
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def _combine(lists: list[list[_Piece]], join: Callable[[list[_Piece]], list[_Piece]]) -> list[_Piece]:
    """Cut all lists at each other's ends, then join what lies over the same range."""
    ends = sorted({p.last for pieces in lists for p in pieces})
    start = lists[0][0].first
    joined: list[_Piece] = []
    for end in ends:
        parts = [next(p for p in pieces if p.first <= start and p.last >= end).on(start, end) for pieces in lists]
        joined.extend(join(parts))
        start = end + 1
    return joined


def _winner(left: _Piece, right: _Piece, keep_larger: bool) -> list[_Piece]:
    """The smaller (or larger) of two pieces, cut where they cross."""
    difference = left.plus(right.scaled(Fraction(-1)))
    rises = difference.direction() >= 0
    low, high = left.first, left.last + 1  # find the first i where the difference is past zero
    while low < high:
        middle = (low + high) // 2
        past = difference.at(middle) > 0 if rises else difference.at(middle) < 0
        low, high = (low, middle) if past else (middle + 1, high)
    before, after = (right, left) if rises == keep_larger else (left, right)
    cut = [(before, left.first, low - 1), (after, low, left.last)]
    return [piece.on(first, last) for piece, first, last in cut if first <= last]


def _stepped(piece: _Piece, runs: list[tuple[int, int]]) -> list[_Piece]:
    """A step function of a piece that rises: a constant piece a step."""
    if piece.direction() < 0:
        raise NoFastSumError("steps of a bound that falls")
    found: list[_Piece] = []
    start = piece.first
    for n, (_, step) in enumerate(runs):
        end = piece.last
        if n + 1 < len(runs):
            low, high = start, piece.last + 1  # the first position that the next step reaches
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if piece.at(middle) >= runs[n + 1][0] else (middle + 1, high)
            end = low - 1
        if start <= end:
            found.append(_Piece(start, end, Fraction(0), Fraction(step)))
            start = end + 1
    return found


def _floored(piece: _Piece) -> _Piece:
    """``floor`` of a line, or of ``(floor(...) + c)/n``, as one floor; a line again where it rises by whole numbers."""
    if not piece.floors:
        if piece.slope.denominator == 1:
            return _Piece(piece.first, piece.last, piece.slope, Fraction(floor_of(piece.constant)))
        m = (piece.slope.denominator * piece.constant.denominator) or 1
        a, b = int(piece.slope * m), int(piece.constant * m)
        return _Piece(piece.first, piece.last, Fraction(0), Fraction(0), ((Fraction(1), a, b, m),))
    if piece.slope == 0 and len(piece.floors) == 1:
        c, a, b, m = piece.floors[0]
        if abs(c.numerator) == 1 and c > 0:  # floor((floor(x) + y)/n) = floor((floor(x) + floor(y))/n), n whole
            n = c.denominator
            shift = floor_of(piece.constant * n)
            return _Piece(piece.first, piece.last, Fraction(0), Fraction(0), ((Fraction(1), a, b + shift * m, m * n),))
        if abs(c.numerator) == 1:  # -floor(x) = ceil(-x) = floor((-a i - b + m - 1)/m) for whole a, b
            flipped = _Piece(piece.first, piece.last, Fraction(0), piece.constant, ((-c, -a, -b + m - 1, m),))
            return _floored(flipped)
    if piece.slope.denominator == 1 and all(c.denominator == 1 for c, *_ in piece.floors):
        return _Piece(piece.first, piece.last, piece.slope, Fraction(floor_of(piece.constant)), piece.floors)
    raise NoFastSumError("a floor of several floors")


_RULES: dict[Any, Callable[[Any, Values], Number]] = {
    sp.Add: _add,
    sp.Mul: _multiply,
    sp.Pow: _power,
    sp.floor: _floor,
    sp.ceiling: _ceiling,
    sp.Min: lambda e, values: min(_evaluate(a, values) for a in e.args),
    sp.Max: lambda e, values: max(_evaluate(a, values) for a in e.args),
    sp.Mod: _mod,
    Gcd: _gcd,
    Steps: _steps,
    sp.Piecewise: _piecewise,
    sp.Sum: _sum,
    sp.StrictLessThan: _compare(lambda a, b: a < b),
    sp.LessThan: _compare(lambda a, b: a <= b),
    sp.StrictGreaterThan: _compare(lambda a, b: a > b),
    sp.GreaterThan: _compare(lambda a, b: a >= b),
    sp.Equality: _compare(lambda a, b: a == b),
    sp.Unequality: _compare(lambda a, b: a != b),
    sp.And: lambda e, values: int(all(_evaluate(a, values) for a in e.args)),
    sp.Or: lambda e, values: int(any(_evaluate(a, values) for a in e.args)),
    sp.Not: lambda e, values: int(not _evaluate(e.args[0], values)),
    type(sp.true): lambda _e, _values: 1,
    type(sp.false): lambda _e, _values: 0,
}

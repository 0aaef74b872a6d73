r"""Exact values of closed forms: integers stay integers, and a sum of 10^16 terms costs no more than one of 10.

A tile count such as ``sum_i ceil(min((i+1) B_r, N)/B_c)`` has no shorter closed form when the tiles do not divide. It is
cut into ranges on which every ``min`` and ``max`` has one winner; there it is a sum of ``floor((a i + b)/m)``, which the
Euclidean algorithm adds up in O(log m) steps (``derive.pieces``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor as floor_of
from math import gcd, lcm, prod
from typing import Any

import sympy as sp

from derive.errors import DomainError, UnboundError
from derive.met_blocks import COUNTS, Met, met
from derive.pieces import NoFastSumError, Piece, added, agreeing, combined, floored, multiplied, stepped, winner
from derive.same import Same
from derive.steps import Steps
from derive.substitution import symbols_in

Number = int | Fraction
Values = Mapping[str, Number]

MAX_DIRECT_TERMS = 20_000
"""Terms that are added one by one when a summand has no fast sum."""
FEW_TERMS = 8
"""Fewer terms than this are added one by one even when there is a fast sum, which costs more."""


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


def _met(expression: Any, values: Values) -> Number:
    what, *sizes, listed = expression.args
    numbers = [_evaluate(size, values) for size in sizes]
    if any(n != int(n) for n in numbers):
        raise DomainError(f"{expression} counts whole rows and keys; got {', '.join(map(str, numbers))}")
    return met(COUNTS[int(what)], *map(int, numbers), listed.kept)


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
    """A sum stands in many amounts of one answer: it is added up once for the same numbers."""
    names = sorted(s.name for s in symbols_in(expression) if s.name in values)
    return _added_up(expression, tuple((name, values[name]) for name in names))


@lru_cache(maxsize=2**14)
def _added_up(expression: Any, numbers: tuple[tuple[str, Number], ...]) -> Number:
    values = dict(numbers)
    summand, *within, (index, low, high) = expression.args
    first, last = _evaluate(low, values), _evaluate(high, values)
    if last < first:
        return 0  # SymPy's own convention would make this minus the terms in between
    first, last = int(first), int(last)
    if within:  # SymPy writes a sum of sums as one, the innermost first
        summand = sp.Sum(summand, *within)
    if last - first < min(FEW_TERMS, MAX_DIRECT_TERMS):
        return _one_by_one(summand, index, values, first, last)
    if not summand.has(sp.Sum):
        try:
            return sum((piece.total() for piece in _pieces(summand, _Variable(index), values, first, last)), 0)
        except NoFastSumError:
            pass
    if last - first < MAX_DIRECT_TERMS:
        try:
            return _at_once(summand, index, values, first, last)
        except NoFastSumError:
            pass
    try:
        if not summand.has(sp.Sum):
            return _by_residue(summand, index, values, first, last)
    except NoFastSumError:
        pass
    return _one_by_one(summand, index, values, first, last)


def _at_once(summand: Any, index: Any, values: Values, first: int, last: int) -> Number:
    """The terms in one array; raises ``NoFastSumError`` where they have none."""
    from derive.term_arrays import Arrays  # most sums have a fast form, and do not wait for NumPy

    return Arrays(lambda part: _evaluate(part, values), {}).total(summand, index, first, last)


def _one_by_one(summand: Any, index: Any, values: Values, first: int, last: int) -> Number:
    """The terms added up."""
    if last - first >= MAX_DIRECT_TERMS:
        raise DomainError(
            f"a sum of {last - first + 1:,} terms has no fast exact value, and at most {MAX_DIRECT_TERMS:,} are added up one "
            "by one: larger tiles or shorter lengths leave fewer"
        )
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
    period = 1
    for rounded in summand.atoms(sp.floor, sp.ceiling):
        if index in symbols_in(rounded):
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


def _pieces(e: Any, variable: _Variable, values: Values, first: int, last: int) -> list[Piece]:
    """*e* as pieces in t that cover ``first..last`` in order."""
    index = variable.index
    if index not in symbols_in(e):
        return [Piece(first, last, Fraction(0), Fraction(_evaluate(e, values)))]
    if e == index:
        return [Piece(first, last, Fraction(variable.step), Fraction(variable.offset))]
    if e.is_Add:
        return combined([_pieces(a, variable, values, first, last) for a in e.args], lambda parts: [added(parts)])
    if e.is_Mul:
        moving = [a for a in e.args if index in symbols_in(a)]
        factor = Fraction(prod(_evaluate(a, values) for a in e.args if index not in symbols_in(a)))
        factors = [_pieces(a, variable, values, first, last) for a in moving]
        return combined(factors, lambda parts: [multiplied(parts).scaled(factor)])
    if e.func is sp.floor:
        return [floored(p) for p in _pieces(e.args[0], variable, values, first, last)]
    if e.func is sp.ceiling:
        return [
            floored(p.scaled(Fraction(-1))).scaled(Fraction(-1))
            for p in _pieces(e.args[0], variable, values, first, last)
        ]
    if e.func is Steps:
        return [s for p in _pieces(e.args[0], variable, values, first, last) for s in stepped(p, e.runs)]
    if e.func is Same:
        return combined([_pieces(a, variable, values, first, last) for a in e.args], lambda parts: agreeing(*parts))
    if e.func in (sp.Min, sp.Max):
        keep_larger = e.func is sp.Max
        found = _pieces(e.args[0], variable, values, first, last)
        for argument in e.args[1:]:
            both = [found, _pieces(argument, variable, values, first, last)]
            found = combined(both, lambda parts: winner(parts[0], parts[1], keep_larger))
        return found
    raise NoFastSumError(f"{e.func.__name__} of {index}")


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
    Met: _met,
    Same: _compare(lambda a, b: a == b),
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

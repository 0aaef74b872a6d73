"""Laws by trial: exact values along one symbol, at random numbers for the others, interpolated and predicted.

A count with ragged sums has no shorter closed form, yet where tiles divide it is a sum of powers x^-1 .. x^2 of each
symbol. Four coefficients are fixed by four values; the other values must lie on the same sum, exactly, or there is no law.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import sympy as sp

from derive.errors import DomainError, UnboundError
from derive.exact import Number, Values, value
from derive.laws.law import Evidence, Law
from derive.laws.numbers import POINTS, Numbers, Pairs
from derive.laws.roles import Roles
from derive.pieces import NoFastSumError
from derive.substitution import free, outermost, sealed
from derive.term_arrays import Arrays

TRIALS = 12
"""Sums of powers that are looked at, each with numbers of its own."""
LOWEST, HIGHEST = -1, 2
_COEFFICIENTS = HIGHEST - LOWEST + 1
assert POINTS > _COEFFICIENTS + 1
MOST_TERMS = 5_000
"""Terms of sums in sums at one point, which are added one by one; beyond this a law takes too long to ask for."""
Known = dict[tuple[sp.Expr, tuple[Number, ...]], Number]
"""Sums, extremes and roundings at numbers that were met before: the counts of one schedule are made of the same few."""


def checked(
    amount: sp.Expr,
    symbol: sp.Symbol,
    roles: Roles,
    *,
    where: tuple[sp.Basic, ...] = (),
    seed: int = 0,
    known: Known | None = None,
) -> Law | None:
    """The law of *amount* in *symbol* that exact values at random numbers agree on; ``None`` where there is none.

    It is looked for where tiles divide lengths; where there is none, also where what else is rounded by, such as the CTAs that
    run at once, divides them, where keys have room for more tiles, and where tiles divide one another.

    Args:
        amount: a closed form, sums included.
        symbol: what is scaled.
        roles: what each symbol is: tiles divide lengths and one another, sizes of a mask fit the keys.
        where: conditions of the case that *amount* is the count in.
        seed: seed of the random numbers.
        known: values of parts, which are added to.
    """
    parts = _Parts({} if known is None else known, amount)
    symbols, rounding = frozenset(free(amount)), frozenset(_rounding(amount))
    for nested, cut, roomy in product(_nestings(roles, rounding), (False, True), (False, True)):
        numbers = Numbers(roles, symbol, symbols, rounding, where, cut, roomy, nested)
        exponents = _exponents(parts, numbers, seed)
        if exponents is not None:
            return Law(amount, symbol, exponents, numbers.regime, Evidence.CHECKED, {}, TRIALS)
    return None


def _exponents(parts: _Parts, numbers: Numbers, seed: int) -> tuple[Fraction, ...] | None:
    """The powers of all trials together; ``None`` where the values of one lie on no sum of powers."""
    seen: set[Fraction] = set()
    for trial in range(TRIALS):
        try:
            terms = _terms(parts, numbers.symbol, numbers.along(trial, seed))
        except (DomainError, UnboundError):
            return None
        if terms is None:
            return None
        seen |= terms
    return tuple(sorted(seen)) or (Fraction(0),)


def _nestings(roles: Roles, rounding: frozenset[sp.Symbol]) -> Iterator[Pairs]:
    """No tile that must divide another; each tile of lengths, and each size cut by, those before it; the other way round."""
    steps = [s for s, _ in roles.sizes if s in rounding]
    pairs = list(combinations([*(t for t, cut in roles.tiles.items() if cut & set(roles.lengths)), *steps], 2))
    yield ()
    if pairs:
        yield tuple((b, a) for a, b in pairs)
        yield tuple(pairs)


def _rounding(amount: sp.Expr) -> set[sp.Symbol]:
    """Symbols that something is divided by and rounded."""
    quotients = {q for e in amount.atoms(sp.floor, sp.ceiling) for q in e.atoms(sp.Pow) if q.exp.is_negative}
    return {s for q in quotients for s in free(q.base)} & free(amount)


def _terms(parts: _Parts, symbol: sp.Symbol, points: list[dict[str, Number]]) -> set[Fraction] | None:
    """The powers whose sum goes through all values; ``None`` when none does."""
    places = [int(numbers[symbol.name]) for numbers in points]
    values = [
        Fraction(parts.value(numbers)) * Fraction(x) ** -LOWEST for x, numbers in zip(places, points, strict=True)
    ]
    through = _interpolated(places, values)
    if any(through[_COEFFICIENTS:]):
        return None
    return {Fraction(n + LOWEST) for n, c in enumerate(through) if c}


def _interpolated(places: list[int], values: list[Fraction]) -> list[Fraction]:
    """Coefficients, constant first, of the polynomial that has *values* at *places*: Newton's divided differences."""
    differences = list(values)
    for order in range(1, len(places)):
        for n in reversed(range(order, len(places))):
            differences[n] = (differences[n] - differences[n - 1]) / (places[n] - places[n - order])
    found: list[Fraction] = [Fraction(0)] * len(places)
    for place, difference in reversed(list(zip(places, differences, strict=True))):
        found = [below - place * c for below, c in zip([Fraction(0), *found[:-1]], found, strict=True)]
        found[0] += difference
    return found


class _Parts:
    """An amount whose sums, extremes and roundings are computed once for each set of their own numbers."""

    def __init__(self, known: Known, amount: sp.Expr) -> None:
        names: dict[sp.Expr, sp.Symbol] = {}
        self._amount = sealed(amount, names)
        self._parts = {name: (part, tuple(sorted(s.name for s in free(part)))) for part, name in names.items()}
        self._known = known

    def value(self, numbers: Values) -> Number:
        """The exact value of the amount.

        Raises:
            DomainError: sums in sums have too many terms.
        """
        found = dict(numbers)
        for name, (part, symbols) in self._parts.items():
            key = part, tuple(numbers[s] for s in symbols)
            if key not in self._known:
                self._known[key] = _total(part, numbers) if isinstance(part, sp.Sum) else value(part, numbers)
            found[name.name] = self._known[key]
        return value(self._amount, found)


def _total(total: sp.Sum, numbers: Values) -> Number:
    """The value of a sum."""
    summand, index, *ends = outermost(total)
    first, last = (int(value(end, numbers)) for end in ends)
    if last < first:
        return 0
    try:
        return Arrays(lambda part: value(part, numbers), {}).total(summand, index, first, last)
    except NoFastSumError:
        if summand.has(sp.Sum) and last - first >= MOST_TERMS:
            raise DomainError(f"{last - first + 1} sums are too many") from None
        return value(total, numbers)

"""Laws by trial: exact values along one symbol, at random numbers for the others, interpolated and predicted.

A count with ragged sums has no shorter closed form, yet where tiles divide it is a sum of powers x^-1 .. x^2 of each
symbol. Four coefficients are fixed by four values; the other values must lie on the same sum, exactly, or there is no law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product

import sympy as sp

from derive.errors import DomainError, UnboundError
from derive.laws.law import Evidence, Law, Open, Regime
from derive.laws.line import Line, Lines
from derive.laws.listed import Listed
from derive.laws.numbers import POINTS, Numbers, Pairs
from derive.laws.roles import Roles
from derive.laws.stated import Stated
from derive.substitution import free

TRIALS = 36
"""Sums of powers that are looked at, each with numbers of its own: a third fit the schedule, the rest the words alone."""
LOWEST, HIGHEST = -1, 2
assert POINTS > HIGHEST - LOWEST + 2


def looked_for(
    amount: sp.Expr,
    symbol: sp.Symbol,
    roles: Roles,
    *,
    where: tuple[sp.Basic, ...] = (),
    seed: int = 0,
    lines: Lines | None = None,
) -> Law | Open:
    """The law of *amount* in *symbol* that exact values at random numbers agree on, or what speaks against one.

    It is looked for where tiles divide lengths; where there is none, also where what else is rounded by, such as the CTAs that
    run at once, divides them, where keys have room for more tiles, where sizes of the mask fill tiles, and where tiles divide
    one another. Each regime is looked at twice: at numbers that the schedule suggests, and at numbers drawn from its words
    alone. Under a list of packed lengths tiles divide each of them.

    Args:
        amount: a closed form, sums included.
        symbol: what is scaled.
        roles: what each symbol is: tiles divide lengths and one another, sizes of a mask fit the keys.
        where: conditions of the case that *amount* is the count in.
        seed: seed of the random numbers.
        lines: drawn before for other counts, which are added to.
    """
    lines = Lines(frozenset(free(amount))) if lines is None else lines
    against = Open(amount, symbol, Regime())
    met: set[Regime] = set()
    for one, *more in _drawings(amount, symbol, roles, where, lines.symbols):
        if one.regime in met:
            continue
        met.add(one.regime)
        try:
            found = _exponents(amount, symbol, _drawn((one, *more), lines, seed))
        except (DomainError, UnboundError) as error:
            against = against if against.points else replace(against, why=str(error))
            continue
        if not isinstance(found, Line):
            return Law(amount, symbol, found[0], one.regime, Evidence.CHECKED, {}, found[1])
        against = Open(amount, symbol, one.regime, tuple(found.points), tuple(found.values(amount)))
    return against


def _drawings(
    amount: sp.Expr, symbol: sp.Symbol, roles: Roles, where: tuple[sp.Basic, ...], symbols: frozenset[sp.Symbol]
) -> Iterator[tuple[Listed] | tuple[Numbers, Stated]]:
    """How numbers are drawn in one regime after the other, the widest first."""
    covering = tuple((a, b) for a, b in _no_smaller(where) if a in roles.tiles and b in roles.lengths)
    spoken = free(amount) - set(dict(covering))
    roles = replace(roles, tiles={t: cut for t, cut in roles.tiles.items() if t in spoken})
    rounding = frozenset(_rounding(amount)) - set(dict(covering))
    nestings = tuple(_nestings(roles, rounding))
    if roles.packed:
        yield from ((Listed(roles, symbol, symbols, nested),) for nested in nestings)
        return
    fits = (
        *product(nestings, (False, True), (False, True), (False,)),
        *product(nestings, (False, True), (False,), (True,)),
    )
    for nested, cut, roomy, filled in fits:
        drawing = Numbers(roles, symbol, symbols, rounding, where, cut, roomy, nested, filled, covering)
        drawing = drawing.without_open_conditions()
        yield drawing, Stated(drawing.regime.also(where=drawing.where), symbol, symbols, rounding, roles)


def _drawn(drawings: tuple[Listed | Numbers | Stated, ...], lines: Lines, seed: int) -> Iterator[Line]:
    """Lines along the symbol; of those drawn from words alone, those that were found.

    Raises:
        DomainError: a condition of the count holds at none of the numbers that the schedule suggests.
    """
    for trial in range(TRIALS):
        drawing = drawings[-1 if trial % 3 else 0]  # two of three from words alone
        line = lines.of((drawing, trial, seed), partial(drawing.along, trial, seed))
        if line is not None:
            yield line


def _exponents(amount: sp.Expr, symbol: sp.Symbol, lines: Iterator[Line]) -> tuple[tuple[Fraction, ...], int] | Line:
    """The powers on all lines together, and how many these are; the first line whose values lie on no sum of powers."""
    seen: set[Fraction] = set()
    count = 0
    for line in lines:
        terms = _terms(amount, symbol, line)
        if terms is None:
            return line
        seen |= terms
        count += 1
    return tuple(sorted(seen)) or (Fraction(0),), count


def _nestings(roles: Roles, rounding: frozenset[sp.Symbol]) -> Iterator[Pairs]:
    """No tile that must divide another; each tile of lengths, and each size cut by, those before it; the other way round."""
    steps = [s for s, _ in roles.sizes if s in rounding]
    pairs = list(combinations([*(t for t, cut in roles.tiles.items() if cut & set(roles.lengths)), *steps], 2))
    yield ()
    if pairs:
        yield tuple((b, a) for a, b in pairs)
        yield tuple(pairs)


def _no_smaller(where: tuple[sp.Basic, ...]) -> Iterator[tuple[sp.Symbol, sp.Symbol]]:
    """Pairs of symbols of which the first is said to be at least the second."""
    for c in where:
        if isinstance(c, (sp.Ge, sp.Le)) and c.gts.is_Symbol and c.lts.is_Symbol:
            yield c.gts, c.lts


def _rounding(amount: sp.Expr) -> set[sp.Symbol]:
    """Symbols that something is divided by and rounded."""
    quotients = {q for e in amount.atoms(sp.floor, sp.ceiling) for q in e.atoms(sp.Pow) if q.exp.is_negative}
    return {s for q in quotients for s in free(q.base)} & free(amount)


def _terms(amount: sp.Expr, symbol: sp.Symbol, line: Line) -> set[Fraction] | None:
    """The powers whose sum goes through all values; ``None`` when none does."""
    places = [int(at[symbol.name]) for at in line.points]
    lowest = LOWEST if all(places) else 0  # nothing has a power below 0 at 0
    values = [v * Fraction(x) ** -lowest for x, v in zip(places, line.values(amount), strict=True)]
    through = _interpolated(places, values)
    if any(through[HIGHEST - lowest + 1 :]):
        return None
    return {Fraction(n + lowest) for n, c in enumerate(through) if c}


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

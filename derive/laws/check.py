"""Laws by trial: exact values along one symbol, at random numbers for the others, interpolated and predicted.

A count with ragged sums has no shorter closed form, yet where tiles divide it is a sum of powers x^-1 .. x^2 of each
symbol. Four coefficients are fixed by four values; the other values must lie on the same sum, exactly, or there is no law.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from random import Random

import sympy as sp

from derive.choice import at_most
from derive.errors import DomainError, UnboundError
from derive.exact import value
from derive.laws.law import Evidence, Law, Regime
from derive.laws.roles import Roles
from derive.substitution import free
from derive.symbols import is_fraction

TRIALS = 4
"""Sums of powers that are looked at, each with numbers of its own."""
LOWEST, HIGHEST = -1, 2
_COEFFICIENTS = HIGHEST - LOWEST + 1
POINTS = _COEFFICIENTS + 2
"""Values along the symbol: two more than coefficients."""
MOST_OPERATIONS = 100
"""Beyond this, or with sums in sums, values at many numbers take too long to ask for."""
_X = sp.Symbol("x")


def checked(amount: sp.Expr, symbol: sp.Symbol, roles: Roles, *, seed: int = 0) -> Law | None:
    """The law of *amount* in *symbol* that exact values at random numbers agree on; ``None`` where there is none.

    None is looked for either where values are slow to find.

    Args:
        amount: a closed form, sums included.
        symbol: what is scaled.
        roles: what each symbol is: tiles divide lengths and one another, sizes of a mask fit the keys.
        seed: seed of the random numbers.
    """
    if amount.count_ops() > MOST_OPERATIONS or any(len(total.atoms(sp.Sum)) > 1 for total in amount.atoms(sp.Sum)):
        return None
    random = Random(f"{seed} {symbol.name}")
    seen: set[Fraction] = set()
    symbols = free(amount)
    for _ in range(TRIALS):
        try:
            terms = _terms(amount, symbol, _along(symbols, symbol, roles, random))
        except (DomainError, UnboundError):
            return None
        if terms is None:
            return None
        seen |= terms
    exponents = tuple(sorted(seen)) or (Fraction(0),)
    return Law(amount, symbol, exponents, _regime(symbol, symbols, roles), Evidence.CHECKED, {}, TRIALS)


def _terms(amount: sp.Expr, symbol: sp.Symbol, points: list[dict[str, int | Fraction]]) -> set[Fraction] | None:
    """The powers whose sum goes through all values; ``None`` when none does."""
    data = []
    for numbers in points:
        x = sp.Integer(int(numbers[symbol.name]))
        data.append((x, sp.Rational(value(amount, numbers)) * x**-LOWEST))
    through = sp.Poly(sp.interpolate(data, _X), _X)
    if through.degree() >= _COEFFICIENTS:
        return None
    return {Fraction(power[0] + LOWEST) for power, c in through.terms() if c != 0}


def _along(symbols: set[sp.Symbol], symbol: sp.Symbol, roles: Roles, random: Random) -> list[dict[str, int | Fraction]]:
    """Numbers for every symbol, those of *symbol* rising, inside the regime that ``checked`` states."""
    sizes = {size for size, _ in roles.sizes}
    named = symbols | set(roles.lengths) | set(roles.tiles) | sizes | {s for p in roles.divides for s in p}
    base: dict[str, int | Fraction] = {
        s.name: Fraction(1, random.randint(1, 4)) if is_fraction(s) else random.randint(1, 4)
        for s in sorted(named, key=str)
    }
    step = lcm(*(int(base[t.name]) for t in roles.tiles if t != symbol))
    skipped = -(-sum(int(base[s.name]) for s in sizes) // step) if symbol in (*roles.lengths, *roles.tiles) else 0
    multiples = range(skipped + 1, skipped + POINTS + 1)
    stepped = symbol in (*roles.lengths, *roles.tiles, *sizes)
    points = []
    for n in multiples:
        at = {**base, symbol.name: step * n if stepped else n}
        for k, length in enumerate(roles.lengths):
            if length != symbol:
                at[length.name] = step * _multiple(symbol, roles, multiples, first=k == 0) * int(base[length.name])
        for divisor, dividend in roles.divides:
            if dividend == symbol:
                at[symbol.name] = int(at[divisor.name]) * n
            elif dividend not in roles.lengths:
                at[dividend.name] = (
                    int(base[divisor.name]) * lcm(*multiples) if divisor == symbol else int(at[divisor.name])
                )
        points.append(at)
    return points


def _multiple(symbol: sp.Symbol, roles: Roles, multiples: range, *, first: bool) -> int:
    """How many steps a length has: what *symbol* cuts is a multiple of all its values, a mask's size is below it."""
    if symbol in roles.lengths:
        return 1 if first else 8 * multiples[-1]
    if _cuts(symbol, roles):
        return lcm(*multiples)
    return 8 * multiples[-1]


def _cuts(symbol: sp.Symbol, roles: Roles) -> bool:
    """Whether lengths must be multiples of it: a tile, a number of parts, or a size of which nothing is known."""
    sized = any(symbol == size for size, _ in roles.sizes)
    grouped = any(symbol in pair and pair[1] not in roles.lengths for pair in roles.divides)
    return symbol not in roles.lengths and not sized and not grouped


def _regime(symbol: sp.Symbol, symbols: set[sp.Symbol], roles: Roles) -> Regime:
    """Where the numbers of ``_along`` lie."""
    tiles = [t for t in roles.tiles if t != symbol]
    sizes = [size for size, _ in roles.sizes]
    whole = [symbol / t for t in tiles if symbol in (*roles.lengths, *roles.tiles, *sizes)]
    for length in (x for x in roles.lengths if x != symbol):
        if symbol in roles.tiles:
            whole.append(length / symbol)
        else:
            whole += [length / (t * symbol) if _cuts(symbol, roles) else length / t for t in tiles]
    whole += [b / a for a, b in roles.divides if symbol in (a, b)]
    where = list(roles.fit if symbols & set(roles.lengths) else ())
    if symbol in roles.tiles and sizes:
        where.append(at_most(sp.Add(*sizes), symbol))
    if len(roles.lengths) == 2:
        where.append(at_most(*roles.lengths))
    return Regime().also(tuple(whole), tuple(where))

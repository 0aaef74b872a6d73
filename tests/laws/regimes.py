"""Laws looked at where they say that they hold, at numbers that have nothing to do with those that they were found at.

A law states its regime. Here all sizes are drawn first, lengths and tiles alike, and rounded up until every quotient is whole;
the symbol takes whatever values are left. Amounts are evaluated point by point, not in the arrays of ``derive.laws``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import lcm
from random import Random

import sympy as sp

from derive.attention import variant
from derive.errors import DomainError
from derive.exact import Number, holds, value
from derive.laws import Law, Roles
from derive.substitution import free
from derive.symbols import C_L2, MAY_BE_ZERO, MEANINGS, is_fraction
from outputs.commands.question import answer
from outputs.laws import Growths, growths, with_groups_open

MASKS: dict[str, tuple[str, ...]] = {
    "full": (),
    "causal": ("mask=causal",),
    "window": ("mask=window",),
    "sinks": ("mask=sinks",),
    "global-local": ("mask=global-local",),
    "chunk": ("mask=chunk",),
    "prefix": ("mask=prefix",),
    "dilated": ("mask=dilated",),
    "block-sparse": ("mask=block-sparse", "s=0.1"),
    "causal-tl": ("mask=causal-tl",),
    "window-tl": ("mask=window-tl",),
    "both sides": ("mask=window", "left=3", "right=2"),
}
TRIES = 60
"""Drawings for each line that is asked for; a regime may be narrow."""
LONGEST = 5_000
"""Of a length, beyond which a sum takes too long to be added up one by one."""
_TOPS = (4, 6, 8, 9, 10, 12, 16, 18, 20, 24, 28, 30, 36, 40)
"""What a symbol that must divide something takes divisors of."""
Point = dict[str, Number]


def asked(name: str, mask: str) -> tuple[Growths, ...]:
    """What ``derive laws`` answers, with the default schedules.

    Raises:
        DeriveError: the variant takes no such mask.
    """
    keys = {symbol: meaning.key for symbol, meaning in MEANINGS.items()}
    words = with_groups_open(MASKS[mask], variant(name).divides, keys)
    return growths(answer(name, words, None, None, "exact", "head", "forward", "nominal"))


@dataclass
class Looked:
    """What came of looking at one law.

    Attributes:
        law: the law.
        lines: how many lines of points said anything about it.
        broken: the points of one on which it does not hold.
    """

    law: Law
    lines: int = 0
    broken: list[Point] | None = None

    def __str__(self) -> str:
        x, at = self.law.symbol.name, (self.broken or [{}])[0]
        seen = [f"{p[x]}: {value(self.law.amount, p)}" for p in self.broken or ()]
        powers = ", ".join(map(str, self.law.exponents))
        return f"{self.law.evidence.value} powers {powers} of {x} where {self.law.regime}; at {at}: {'; '.join(seen)}"


def look(law: Law, roles: Roles, lines: int, seed: str) -> Looked:
    """Look at *law* on so many lines, or on those that were found."""
    found = Looked(law)
    for points in islice(_lines(law, roles, Random(seed), lines * TRIES), lines):
        found.lines += 1
        if not holds_on(law, points):
            found.broken = points
            break
    return found


def holds_on(law: Law, points: list[Point]) -> bool:
    """Whether the amounts are the law's sum of powers, or lie on one sum of these powers where no coefficients are known."""
    amounts = [Fraction(value(law.amount, p)) for p in points]
    if law.coefficients:
        return all(law.at(p) in (None, amount) for p, amount in zip(points, amounts, strict=True))
    rows = [
        [*(Fraction(p[law.symbol.name]) ** int(e) for e in law.exponents), a]
        for p, a in zip(points, amounts, strict=True)
    ]
    for column in range(
        len(law.exponents)
    ):  # Gauss: what is left of an amount once the powers are gone must be nothing
        pivot = next((r for r in rows if r[column]), None)
        if pivot is not None:
            rows = [
                [a - b * r[column] / pivot[column] for a, b in zip(r, pivot, strict=True)]
                for r in rows
                if r is not pivot
            ]
    return not any(r[-1] for r in rows)


# --- drawing ----------------------------------------------------------------------------------------------------------


def _lines(law: Law, roles: Roles, random: Random, tries: int) -> Iterator[list[Point]]:
    """Points along the symbol, in the regime, more of them than the law has powers."""
    for _ in range(tries):
        try:
            points = _with_cache(law, _line(law, roles, random), random)
            if len(points) > (0 if law.coefficients else len(law.exponents)):
                yield points
        except DomainError:  # a point that divides by zero, or a sum too long to add up
            continue


def _line(law: Law, roles: Roles, random: Random) -> list[Point]:
    x = law.symbol
    whole = [*law.regime.whole, *(b / a for a, b in roles.divides)]
    at = _drawn(law, roles, random)
    top = random.choice(_TOPS)
    divides = any(sp.fraction(q)[1].has(x) for q in whole)
    for unit in (1, 0):
        at[x.name] = unit = _rounded_up(at, x, whole, 1) if unit else int(at[x.name])
        at[x.name] = unit * top if divides else unit  # what it divides is a multiple of all its values
        _round_up(at, x, whole, random)
        at[x.name] = unit
    several = [n for n in range(1, top + 1) if top % n == 0] if divides else range(1, 40)
    start = 0 if divides else random.choice((0, 0, 1, 3, 10, 20))
    points: list[Point] = [{**at, x.name: unit * (start + n)} for n in several]
    points += [{**at, x.name: 0}] if x.name in MAY_BE_ZERO and min(law.exponents) >= 0 else []
    if any(int(p[s.name]) > LONGEST for p in points for s in roles.lengths if s != x):
        return []
    fit = [p for p in points if _fits(law, whole, p)]
    return (
        fit if divides else sorted(random.sample(fit, min(len(fit), len(law.exponents) + 3)), key=lambda p: p[x.name])
    )


def _fits(law: Law, whole: list[sp.Expr], at: Point) -> bool:
    """Whether *at* lies in the regime, as far as no size of the L2 is asked for; the amount may not depend on that."""
    if any(Fraction(value(q, at)).denominator != 1 for q in whole):
        return False
    return all(holds(c, at) for c in law.regime.where if C_L2 not in free(c))


def _drawn(law: Law, roles: Roles, random: Random) -> Point:
    """A number for each symbol."""
    said = {s for e in (law.amount, *law.regime.whole, *law.regime.where) for s in free(e)}
    said |= {
        law.symbol,
        *roles.lengths,
        *roles.tiles,
        *(s for s, _ in roles.sizes),
        *(s for p in roles.divides for s in p),
    }
    most = random.choice((2, 5, 12))
    at: Point = {}
    for s in sorted(said, key=str):
        at[s.name] = Fraction(1, random.randint(1, 9)) if is_fraction(s) else random.randint(1, most)
    for size, _ in roles.sizes:
        edge = int(at[random.choice([size, *roles.tiles]).name])
        at[size.name] = max(size.name not in MAY_BE_ZERO, edge * random.choice((0, 1, 1, 2, 3)) + random.randint(-1, 1))
    needed = sum(int(at[s.name]) for s in {*(size for size, _ in roles.sizes), *roles.tiles})
    for length in roles.lengths:
        at[length.name] = random.choice((1, most, needed, 4 * needed, 100))
    if len(roles.lengths) > 1 and random.random() < 0.8:
        at[roles.lengths[-1].name] = int(at[roles.lengths[0].name]) + needed * random.randint(0, 2)
    return at


def _rounded_up(at: Point, symbol: sp.Symbol, whole: list[sp.Expr], least: int) -> int:
    """The smallest number from *least* on with which all quotients that *symbol* stands on top of are whole."""
    ones = [Fraction(value(q, {**at, symbol.name: 1})) for q in whole if sp.fraction(q)[0].has(symbol)]
    step = lcm(*(one.denominator for one in ones))
    return step * max(1, -(-least // step))


def _round_up(at: Point, kept: sp.Symbol, whole: list[sp.Expr], random: Random) -> None:
    """Round up, in place, whatever stands on top of a quotient that is not whole, *kept* apart."""
    tops = {s for q in whole for s in sp.fraction(q)[0].free_symbols} - {kept}
    for _ in range(3):
        for symbol in random.sample(sorted(tops, key=str), len(tops)):
            at[symbol.name] = _rounded_up(at, symbol, whole, int(at[symbol.name]))


def _with_cache(law: Law, points: list[Point], random: Random) -> list[Point]:
    """*points* with an L2 of one size that suits most of them, where the regime asks for one and the amount does not."""
    asking = [c for c in law.regime.where if C_L2 in free(c)]
    if not asking or not points:
        return points
    sides = {s for c in asking for r in c.atoms(sp.core.relational.Relational) for s in r.args if C_L2 not in free(s)}
    marks = {int(value(s, p)) + more for s in sides for p in (points[0], points[-1]) for more in (-1, 0, 1)}
    found: list[Point] = []
    for mark in random.sample(sorted(marks), min(len(marks), 12)):
        suited = [p for p in ({**p, C_L2.name: max(mark, 1)} for p in points) if all(holds(c, p) for c in asking)]
        found = max(found, suited, key=len)
    return found

"""Numbers drawn from a regime as it is stated, and from nothing else: where a law is said to hold, it is looked at.

Tiles first, sizes of a mask beside them, then all that must be a multiple; what a condition asks for is made longer until it
holds, so that many numbers lie at its very edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from random import Random

import sympy as sp

from derive.exact import Number, holds, value
from derive.laws.law import Regime
from derive.laws.numbers import POINTS
from derive.laws.roles import Roles
from derive.substitution import free, symbols_in
from derive.symbols import MAY_BE_ZERO, is_fraction

_WHOLES = (12, 12, 18, 20, 24, 30)
"""What a symbol that divides takes divisors of, ``POINTS`` of them."""
_ATTEMPTS, _ROUNDS = 6, 5
_LONGEST = 6_000
"""Of a length: a longer one takes too long to add up, and says no more."""


@dataclass(frozen=True)
class Stated:
    """How numbers are drawn.

    Attributes:
        regime: where they lie.
        symbol: what takes several values.
        symbols: those of the amount.
        rounding: those of them that something is rounded by.
        roles: what each symbol is: which ones are tiles and lengths, and what divides what in every shape.
    """

    regime: Regime
    symbol: sp.Symbol
    symbols: frozenset[sp.Symbol]
    rounding: frozenset[sp.Symbol]
    roles: Roles

    def along(self, trial: int, seed: int = 0) -> list[dict[str, Number]] | None:
        """``POINTS`` points that differ in the symbol alone, and in what follows from it; ``None`` when none were found."""
        random = Random(f"{seed} {trial} {self.symbol} stated")
        found = (self._line(random) for _ in range(_ATTEMPTS))
        return next((line for line in found if line is not None), None)

    @cached_property
    def _whole(self) -> tuple[sp.Expr, ...]:
        """What must be whole: as stated, and in every shape."""
        always = [b / a for a, b in self.roles.divides]
        return tuple(dict.fromkeys((*self.regime.whole, *always)))

    @cached_property
    def _named(self) -> list[sp.Symbol]:
        speaks = (*self._whole, *self.regime.where)
        found = {*self.symbols, *self.roles.lengths, *self.roles.tiles, self.symbol}.union(*map(free, speaks))
        return sorted(found, key=str)

    def _line(self, random: Random) -> list[dict[str, Number]] | None:
        at = self._base(random)
        if not self._made_whole(at, [q for q in self._whole if not q.has(self.symbol)], random):
            return None
        name = self.symbol.name
        below = [q for q in self._whole if self.symbol in symbols_in(sp.fraction(q)[1])]
        above = [q for q in self._whole if q.has(self.symbol) and q not in below]
        step = lcm(*(Fraction(value(q, {**at, name: 1})).denominator for q in above))
        multiples, lead = _multiples(random, bool(below)), random.choice((1, 1, 1, 2, 3, 4, 5, 7))
        if not below and random.random() < 0.5:
            lead = 1
            multiples = [0, *multiples[:-1]] if name in MAY_BE_ZERO else multiples
        for _ in range(_ROUNDS):
            values = [step * lead * n for n in multiples]
            for x in values:
                at[name] = x
                if not self._made_whole(at, below, random):
                    return None
            points = [{**at, name: x} for x in values]
            broken = [c for c in self.regime.where if not all(holds(c, p) for p in points)]
            if not broken:
                return points if self._is_good(points) else None
            lead = self._mended(broken[0], at, values, lead, random)
        return None

    def _is_good(self, points: list[dict[str, Number]]) -> bool:
        """Whether all quotients are whole, and no length is beyond what can be added up."""
        longest = max(int(p[s.name]) for p in points for s in self.roles.lengths or (self.symbol,))
        return longest <= _LONGEST and all(Fraction(value(q, p)).denominator == 1 for q in self._whole for p in points)

    def _mended(
        self, condition: sp.Basic, at: dict[str, Number], values: Sequence[int], lead: int, random: Random
    ) -> int:
        """Make what *condition* asks to be large larger: a length or the symbol by a whole factor, another one as it must be.

        Returns:
            The factor of the symbol's values; the rest is changed in place.
        """
        if not isinstance(condition, (sp.Ge, sp.Le, sp.Gt, sp.Lt)):
            return lead
        large, small = condition.gts, condition.lts
        if large.is_Symbol and large not in (self.symbol, *self.roles.lengths):
            least = max(-(-Fraction(value(small, {**at, self.symbol.name: x})) // 1) for x in values)
            at[large.name] = int(least) + random.choice((0, 0, 1, 4)) + isinstance(condition, (sp.Gt, sp.Lt))
            return lead
        if large in self.roles.lengths and large != self.symbol:
            along = [{**at, self.symbol.name: x} for x in values]
            needed = max(Fraction(value(small, p)) for p in along) + isinstance(condition, (sp.Gt, sp.Lt))
            above = [q for q in self._whole if sp.fraction(q)[0].has(large)]
            step = lcm(*(Fraction(value(q, {**p, large.name: 1})).denominator for q in above for p in along))
            at[large.name] = step * (int(-(-needed // step)) + random.choice((0, 0, 0, 1, 3)))
            return lead
        keys = [s for s in self.roles.lengths if s != self.symbol and large.has(s)][-1:]
        by = random.choice((1, 1, 2))
        for k in range(2, 40):
            for one in keys:
                longer = {**at, one.name: at[one.name] * k}
                if all(holds(condition, {**longer, self.symbol.name: x}) for x in values):
                    at[one.name] = at[one.name] * k * by
                    return lead
            if not keys and all(holds(condition, {**at, self.symbol.name: x * k}) for x in values):
                return lead * k * by
        return lead

    def _base(self, random: Random) -> dict[str, Number]:
        """One number for each symbol, nothing fitted yet."""
        wide = random.choice((2, 4, 9))
        sizes = [s for s, _ in self.roles.sizes]
        inside = bool(sizes) and random.random() < 0.4  # all that the mask takes lies inside one tile
        tiles = [t for t in self.roles.tiles if t not in sizes]
        cut = {s for symbols in self.roles.tiles.values() for s in symbols}
        at: dict[str, Number] = {}
        for s in self._named:
            most = wide if s in tiles or s in self.rounding or s in cut else 3
            at[s.name] = Fraction(1, random.randint(1, 9)) if is_fraction(s) else random.randint(1, most)
        for t in tiles if inside else ():
            at[t.name] = 2 * len(sizes) + random.randint(1, 6)
        for s in sizes:
            tile = int(at[random.choice(tiles).name]) if tiles else 1
            edge = 0 if inside else tile * random.randint(0, 3) if tiles else random.randint(0, wide)
            at[s.name] = max(0 if s.name in MAY_BE_ZERO else 1, edge + random.choice((-1, 0, 1, 2)))
        return at

    def _made_whole(self, at: dict[str, Number], quotients: list[sp.Expr], random: Random) -> bool:
        """Multiply what stands on top, in place, until all *quotients* are whole; whether they are."""
        for _ in range(4):
            found = [(q, Fraction(value(q, at)).denominator) for q in quotients]
            broken = [(q, denominator) for q, denominator in found if denominator != 1]
            if not broken:
                return True
            for quotient, _denominator in broken:
                top = sorted((s for s in symbols_in(sp.fraction(quotient)[0]) if s != self.symbol), key=str)
                if not top:
                    return False
                one = random.choice(top).name
                at[one] = at[one] * Fraction(value(quotient, at)).denominator
        return False


def _multiples(random: Random, divides: bool) -> list[int]:
    """What the symbol's values are multiples by: divisors of one number where lengths are multiples of all of them."""
    if divides:
        whole = random.choice(_WHOLES)
        return sorted(random.sample([n for n in range(1, whole + 1) if whole % n == 0], POINTS))
    return list(range(1, POINTS + 1)) if random.random() < 0.5 else sorted(random.sample(range(1, 3 * POINTS), POINTS))

"""Numbers at which a law is looked for under a list of packed lengths: these stay, and tiles divide each of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd
from random import Random

import sympy as sp

from derive.errors import DomainError
from derive.exact import Number
from derive.laws.law import Regime
from derive.laws.numbers import POINTS, Pairs
from derive.laws.roles import Roles
from derive.symbols import is_fraction


@dataclass(frozen=True)
class Listed:
    """How numbers are drawn.

    Attributes:
        roles: what each symbol is, and what the list packs.
        symbol: what takes several values.
        symbols: those of all amounts.
        nested: tiles that divide other tiles, (inner, outer).
    """

    roles: Roles
    symbol: sp.Symbol
    symbols: frozenset[sp.Symbol]
    nested: Pairs = ()

    @property
    def shared(self) -> int:
        """The largest tile that divides all packed lengths."""
        return gcd(*self.roles.packed)

    @property
    def regime(self) -> Regime:
        """Where the numbers of ``along`` lie: no tile holds rows of two sequences."""
        divided = [self.shared / t for t in self.roles.tiles]
        return Regime(tuple(dict.fromkeys((*divided, *(outer / inner for inner, outer in self.nested)))))

    def along(self, trial: int, seed: int = 0) -> list[dict[str, Number]]:
        """Numbers for every symbol, those of the symbol rising: a tile takes all values that there are.

        Raises:
            DomainError: these are too few to tell one sum of powers from another.
        """
        random = Random(f"{seed} {trial} {self.symbol} listed")
        for _ in range(2 * POINTS):
            at = self._drawn(random)
            several = self._divisors if self.symbol in self.roles.tiles else range(1, 4 * POINTS)
            points = [{**at, self.symbol.name: n} for n in several]
            points = [p for p in points if self._is_so(p)]
            if len(points) >= POINTS:
                return points
        raise DomainError(
            f"fewer than {POINTS} values of {self.symbol} divide all of {', '.join(map(str, self.roles.packed))}"
        )

    def _is_so(self, at: dict[str, Number]) -> bool:
        """Whether a point lies in the regime, and every shape's sizes divide one another in it."""
        shares = (Fraction(at[b.name]) / at[a.name] for a, b in self.roles.divides)
        return self.regime.broken(at) is None and all(share.denominator == 1 for share in shares)

    @cached_property
    def _divisors(self) -> list[int]:
        return [n for n in range(1, self.shared + 1) if self.shared % n == 0]

    def _drawn(self, random: Random) -> dict[str, Number]:
        """A number for each symbol: of a tile a divisor, of a length what the list adds up to."""
        at: dict[str, Number] = {}
        pairs = {s for pair in self.roles.divides for s in pair}
        for s in sorted({*self.symbols, *self.roles.tiles, *self.roles.lengths, *pairs, self.symbol}, key=str):
            drawn = random.randint(1, 7)
            at[s.name] = Fraction(1, drawn) if is_fraction(s) else drawn
        for divisor, dividend in self.roles.divides:
            at[dividend.name] = at[divisor.name] * random.choice((1, 2, 60))
        at |= {t.name: random.choice(self._divisors) for t in self.roles.tiles}
        return at | {length.name: sum(self.roles.packed) for length in self.roles.lengths}

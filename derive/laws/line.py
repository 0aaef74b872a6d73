"""Points along one symbol, and amounts at all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import sympy as sp

from derive.exact import Number, value
from derive.pieces import NoFastSumError
from derive.term_arrays import Arrays, Terms

Points = list[dict[str, Number]]


@dataclass(frozen=True, eq=False)
class Line:
    """Points that differ in one symbol, and in what follows from it.

    Attributes:
        points: a number for every symbol, by its name.
        symbols: these symbols.
    """

    points: Points
    symbols: frozenset[sp.Symbol]

    def values(self, amount: sp.Expr) -> list[Fraction]:
        """The exact values of *amount*, in arrays where these can hold it, else point by point.

        Parts are remembered: the counts of one schedule are made of the same few.

        Raises:
            DomainError, UnboundError: see ``derive.exact.value``.
        """
        try:
            return self._arrays.values(amount, len(self.points))
        except NoFastSumError:
            return [Fraction(value(amount, at)) for at in self.points]

    @cached_property
    def _arrays(self) -> Arrays:
        """What is not the same at all points has an array; the rest is a number."""
        first = self.points[0]
        columns = {s: [at[s.name] for at in self.points] for s in self.symbols}
        moving = {s: Terms.along(column) for s, column in columns.items() if len(set(column)) > 1}
        return Arrays(lambda part: value(part, first), moving)


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines that were drawn before: one serves all counts that are looked at along one symbol in one regime.

    Attributes:
        symbols: those of all counts.
    """

    symbols: frozenset[sp.Symbol]
    drawn: dict[Hashable, Line | None] = field(default_factory=dict)

    def of(self, key: Hashable, draw: Callable[[], Points | None]) -> Line | None:
        """The line of *key*, drawn if it is the first time; ``None`` where none was found."""
        if key not in self.drawn:
            points = draw()
            self.drawn[key] = None if points is None else Line(points, self.symbols)
        return self.drawn[key]

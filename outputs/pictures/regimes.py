"""Where which class is least: a map of M against another size, and the axis of M alone, at the numbers of the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log2
from typing import TYPE_CHECKING

import sympy as sp

from derive.growth.parameters import exponents_of
from derive.symbols import M

if TYPE_CHECKING:
    from derive.exact import Number
    from derive.growth.parameters import Condition
    from outputs.bounds import Bounds

Point = tuple[float, float]


@dataclass(frozen=True)
class HalfPlane:
    """Where ``across log2(M) + up log2(y) + other >= 0``.

    Attributes:
        across, up: exponents of M and of the other size.
        others: the exponent of each symbol that is kept.
    """

    across: Fraction
    up: Fraction
    others: tuple[tuple[str, Fraction], ...]

    def at(self, point: Point, values: Mapping[str, Number]) -> float:
        """How far inside *point*, given in powers of two, lies."""
        kept = sum(float(e) * log2(values[name]) for name, e in self.others)
        return float(self.across) * point[0] + float(self.up) * point[1] + kept


@dataclass(frozen=True)
class Region:
    """A region of the map.

    Attributes:
        monomial: the class that is least there.
        schedules: those that reach it.
        conditions: what decides that, as small <= big.
        sides: everything that bounds it.
    """

    monomial: sp.Expr
    schedules: tuple[str, ...]
    conditions: tuple[Condition, ...]
    sides: tuple[HalfPlane, ...]

    def corners(self, box: tuple[float, float, float, float], values: Mapping[str, Number]) -> tuple[Point, ...]:
        """The part inside *box* (least and largest M, least and largest other size, in powers of two), counterclockwise."""
        left, right, low, high = box
        found: list[Point] = [(left, low), (right, low), (right, high), (left, high)]
        for side in self.sides:
            found = _cut(found, side, values)
        return tuple(found)


def _cut(corners: list[Point], side: HalfPlane, values: Mapping[str, Number]) -> list[Point]:
    """Sutherland and Hodgman's clipping of a convex polygon by one line."""
    found: list[Point] = []
    for a, b in zip(corners, [*corners[1:], *corners[:1]], strict=True):
        inside, next_inside = side.at(a, values), side.at(b, values)
        if inside >= 0:
            found.append(a)
        if (inside >= 0) != (next_inside >= 0):
            share = inside / (inside - next_inside)
            found.append((a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])))
    return found


def regions(bounds: Bounds, other: sp.Symbol) -> tuple[Region, ...]:
    """The regimes of *bounds* as regions of M against *other*."""
    found = []
    for regime in bounds.best:
        sides = []
        for small, big in bounds.parameters.conditions(regime.region):
            exponents = dict(exponents_of(big))
            for symbol, e in exponents_of(small).items():
                exponents[symbol] = exponents.get(symbol, Fraction(0)) - e
            across, up = exponents.pop(M, Fraction(0)), exponents.pop(other, Fraction(0))
            kept = tuple((s.name, e) for s, e in sorted(exponents.items(), key=lambda pair: pair[0].name) if e)
            sides.append(HalfPlane(across, up, kept))
        found.append(Region(regime.monomial, regime.schedules, regime.conditions, tuple(sides)))
    return tuple(found)


@dataclass(frozen=True)
class Interval:
    """A stretch of the axis of M.

    Attributes:
        low, high: its ends in elements, exact where they are rational powers; ``None`` beyond the ends of the axis.
        monomial: the class that is least there.
        schedules: those that reach it.
    """

    low: float
    high: float
    monomial: sp.Expr
    schedules: tuple[str, ...]


def along_memory(bounds: Bounds, values: Mapping[str, Number], low: float, high: float) -> tuple[Interval, ...]:
    """The regimes along M from *low* to *high* elements, everything else at *values*."""
    found = []
    for region in regions(bounds, M):
        least, largest = log2(low), log2(high)
        for side in region.sides:
            slope, at_zero = float(side.up + side.across), side.at((0.0, 0.0), values)
            if slope > 0:
                least = max(least, -at_zero / slope)
            elif slope < 0:
                largest = min(largest, -at_zero / slope)
            elif at_zero < -1e-12:
                largest = least
        if largest - least > 1e-9:
            found.append(Interval(2**least, 2**largest, region.monomial, region.schedules))
    return tuple(sorted(found, key=lambda i: (i.low, i.high)))

"""Sums over ranges of lines and rounded lines: what a summand is on each range where one minimum or maximum wins.

Source: the floor-sum reduction is the one of Graham, Knuth & Patashnik, Concrete Mathematics, section 3.4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor as floor_of


class NoFastSumError(Exception):
    """The summand is not made of lines, floors and monotone bounds."""


@dataclass(frozen=True, slots=True)
class Piece:
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

    def on(self, first: int, last: int) -> Piece:
        """The same on a part of its range."""
        return Piece(first, last, self.slope, self.constant, self.floors)

    def scaled(self, by: Fraction) -> Piece:
        """Its values times *by*."""
        floors = tuple((c * by, a, b, m) for c, a, b, m in self.floors)
        return Piece(self.first, self.last, self.slope * by, self.constant * by, floors)

    def plus(self, other: Piece) -> Piece:
        """The sum of two pieces of one range."""
        return Piece(
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


def added(parts: list[Piece]) -> Piece:
    """The sum of pieces of one range."""
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def combined(lists: list[list[Piece]], join: Callable[[list[Piece]], list[Piece]]) -> list[Piece]:
    """Cut all lists at each other's ends, then join what lies over the same range."""
    ends = sorted({p.last for pieces in lists for p in pieces})
    start = lists[0][0].first
    joined: list[Piece] = []
    for end in ends:
        parts = [next(p for p in pieces if p.first <= start and p.last >= end).on(start, end) for pieces in lists]
        joined.extend(join(parts))
        start = end + 1
    return joined


def winner(left: Piece, right: Piece, keep_larger: bool) -> list[Piece]:
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


def multiplied(parts: list[Piece]) -> Piece:
    """The product of pieces of one range, of which one at most moves.

    Raises:
        NoFastSumError: two of them move.
    """
    constant = Fraction(1)
    moving = None
    for part in parts:
        if part.slope == 0 and not part.floors:
            constant *= part.constant
        elif moving is None:
            moving = part
        else:
            raise NoFastSumError("a product of two terms that both move")
    return (moving or Piece(parts[0].first, parts[0].last, Fraction(0), Fraction(1))).scaled(constant)


def agreeing(left: Piece, right: Piece) -> list[Piece]:
    """1 where two pieces of one range are equal, 0 elsewhere."""
    difference = left.plus(right.scaled(Fraction(-1)))
    if difference.direction() < 0:
        difference = difference.scaled(Fraction(-1))
    span = range(left.first, left.last + 1)
    begin = left.first + bisect_left(span, Fraction(0), key=difference.at)
    end = left.first + bisect_right(span, Fraction(0), key=difference.at)
    cut = [(0, left.first, begin - 1), (1, begin, end - 1), (0, end, left.last)]
    return [Piece(first, last, Fraction(0), Fraction(same)) for same, first, last in cut if first <= last]


def stepped(piece: Piece, runs: list[tuple[int, int]]) -> list[Piece]:
    """A step function of a piece that rises: a constant piece a step."""
    if piece.direction() < 0:
        raise NoFastSumError("steps of a bound that falls")
    found: list[Piece] = []
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
            found.append(Piece(start, end, Fraction(0), Fraction(step)))
            start = end + 1
    return found


def floored(piece: Piece) -> Piece:
    """``floor`` of a line, or of ``(floor(...) + c)/n``, as one floor; a line again where it rises by whole numbers."""
    if not piece.floors:
        if piece.slope.denominator == 1:
            return Piece(piece.first, piece.last, piece.slope, Fraction(floor_of(piece.constant)))
        m = piece.slope.denominator * piece.constant.denominator
        a, b = int(piece.slope * m), int(piece.constant * m)
        return Piece(piece.first, piece.last, Fraction(0), Fraction(0), ((Fraction(1), a, b, m),))
    if piece.slope == 0 and len(piece.floors) == 1:
        c, a, b, m = piece.floors[0]
        if abs(c.numerator) == 1 and c > 0:  # floor((floor(x) + y)/n) = floor((floor(x) + floor(y))/n), n whole
            n = c.denominator
            shift = floor_of(piece.constant * n)
            return Piece(piece.first, piece.last, Fraction(0), Fraction(0), ((Fraction(1), a, b + shift * m, m * n),))
        if abs(c.numerator) == 1:  # -floor(x) = ceil(-x) = floor((-a i - b + m - 1)/m) for whole a, b
            flipped = Piece(piece.first, piece.last, Fraction(0), piece.constant, ((-c, -a, -b + m - 1, m),))
            return floored(flipped)
    if piece.slope.denominator == 1 and all(c.denominator == 1 for c, *_ in piece.floors):
        return Piece(piece.first, piece.last, piece.slope, Fraction(floor_of(piece.constant)), piece.floors)
    raise NoFastSumError("a floor of several floors")

"""Keys that stand together, for each query of a range, and which queries see any of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import sympy as sp

from derive.clamped import clamp, stair_of
from derive.extremes import floor_of, least, most, up
from derive.symbols import ROW

ZERO, ONE = sp.Integer(0), sp.Integer(1)
Rows = tuple[sp.Expr, sp.Expr, sp.Expr]
"""The first query, one past the last, and 1 or 0: whether they are there at all."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Keys that stand together, for each query of a range.

    A query's keys overlap those of the next, or touch them; ``first`` is at most ``last + 1`` before both are held between
    0 and the number of keys.

    Attributes:
        first, last: its ends as expressions in ``ROW``; ``None`` is the first or the last key there is.
        since, until: the queries it is for, ``until`` left out; ``None`` is all from the start, or up to the end.
        copies: how many such intervals there are, numbered by ``COPY`` from 0 in the order of their keys.
    """

    first: sp.Expr | None = None
    last: sp.Expr | None = None
    since: sp.Expr | None = None
    until: sp.Expr | None = None
    copies: sp.Expr = ONE

    @property
    def may_be_empty_inside(self) -> bool:
        """Whether it may begin and end between two keys in the middle, rather than at the first or past the last."""
        return self.first is not None and self.first.func is sp.Max


def rows_that_see(interval: Interval, rows: sp.Expr, columns: sp.Expr) -> Rows | None:
    """The queries that see some key of *interval*, where they stand together; ``None`` where that is not plain.

    Args:
        interval: the keys.
        rows: number of queries.
        columns: number of keys.
    """
    first, last = interval.first or ZERO, interval.last
    begin, end = interval.since or ZERO, rows if interval.until is None else least(interval.until, rows)
    if (stair := stair_of(first)) is not None:
        size, offset = stair
        end, first = least(end, size * up(columns / size) - offset), ZERO
    firsts = first.args if first.func is sp.Max else (first,)
    lasts = () if last is None else last.args if last.func is sp.Min else (last,)
    if last is not None and last.func is sp.Max:
        (floor, *_), (line, *more) = (
            [end for end in last.args if end.has(ROW) == moves] or [None] for moves in (False, True)
        )
        if more or line is None or floor is None or floor + 1 not in firsts:
            return None
        lasts = (line - floor - 1,)  # it has a key where its last line has come as far as it may begin
    some = ONE
    for room in (*lasts, *(columns - 1 - part for part in firsts)):  # none of these is negative
        slope = sp.expand(room).coeff(ROW)
        rest = sp.expand(room - slope * ROW)
        if rest.has(ROW):
            return None
        if slope == 1:
            begin = most(begin, -rest)
        elif slope == -1:
            end = least(end, rest + 1)
        elif slope != 0:
            return None
        elif floor_of(rest) < 0:
            some *= clamp(rest + 1, ONE)
    return begin, end, some


def rows_in_any(ranges: list[Rows]) -> sp.Expr:
    """How many queries stand in any of *ranges*: those in each, less those in two, and so on."""
    total = ZERO
    for n in range(1, len(ranges) + 1):
        for chosen in combinations(ranges, n):
            begins, ends, some = zip(*chosen, strict=True)
            total -= (-1) ** n * sp.Mul(*some) * most(reduce(least, ends) - reduce(most, begins), ZERO)
    return total

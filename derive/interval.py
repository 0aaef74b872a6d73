"""Keys that stand together, for each query of a range, and which queries see any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import sympy as sp

from derive.clamped import clamp, stair_of
from derive.extremes import down, floor_of, least, most, up
from derive.substitution import multiplied_out
from derive.symbols import COPY, ROW

ZERO, ONE = sp.Integer(0), sp.Integer(1)
Rows = tuple[sp.Expr, sp.Expr, sp.Expr]
"""The first query, one past the last, and 1 or 0: whether they are there at all."""
Rooms = tuple[sp.Expr, sp.Expr, list[sp.Expr]]
"""The first query, one past the last, and what must be at least 1 for them to be there."""


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
    found = rows_between(interval, rows, (ZERO, columns - 1))
    if found is None:
        return None
    begin, end, rooms = found
    return begin, end, sp.Mul(*(clamp(room, ONE) for room in rooms))


def rows_between(interval: Interval, rows: sp.Expr, among: tuple[sp.Expr, sp.Expr]) -> Rooms | None:
    """The queries that see some of the keys *among*, the first and the last, where they stand together.

    Args:
        interval: the keys that a query sees.
        rows: number of queries.
        among: the first key that counts and the last.

    Returns:
        The first query, one past the last, and what must be at least 1 for them to be there; ``None`` where that is not plain.
    """
    lowest, highest = among
    first, last = interval.first or ZERO, interval.last
    begin, end = interval.since or ZERO, rows if interval.until is None else least(interval.until, rows)
    if (stair := stair_of(first)) is not None:
        size, offset = stair
        end, first = least(end, size * up((highest + 1) / size) - offset), ZERO
    firsts = first.args if first.func is sp.Max else (first,)
    lasts = () if last is None else last.args if last.func is sp.Min else (last,)
    if last is not None and last.func is sp.Max:
        (floor, *_), (line, *more) = (
            [end for end in last.args if end.has(ROW) == moves] or [None] for moves in (False, True)
        )
        if more or line is None or floor is None or floor + 1 not in firsts:
            return None
        some_key = lowest + line - floor - 1  # it has a key where its last line has come as far as it may begin
        lasts = (some_key,) if lowest == 0 else (some_key, line)
    rooms: list[sp.Expr] = []
    for room in (*(part - lowest for part in lasts), *(highest - part for part in firsts)):  # none of these is negative
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
            rooms.append(rest + 1)
    return begin, end, rooms


def rows_between_copies(interval: Interval, rows: sp.Expr, among: tuple[sp.Expr, sp.Expr]) -> Rooms | None:
    """The same where each copy of *interval* is one key, q + a + c t; queries in between may see none.

    The first to come among those keys is the copy that is furthest on and not past them for query 0; the last to leave is the
    first that the last query has at them or behind.
    """
    lowest, highest = among
    key = sp.expand(interval.first) if interval.first == interval.last and interval.first is not None else ZERO
    stride = key.coeff(COPY)
    start = sp.expand(key - ROW - stride * COPY)
    if stride == 0 or start.has(ROW, COPY) or interval.since is not None or interval.until is not None:
        return None
    furthest = least(interval.copies - 1, _in_steps(highest - start, stride, down))
    nearest = most(_in_steps(lowest - start - rows + 1, stride, up), ZERO)
    begin = most(multiplied_out(lowest - start - stride * furthest), ZERO)
    end = least(multiplied_out(highest - start - stride * nearest + 1), rows)
    return begin, end, [furthest + 1]


def _in_steps(keys: sp.Expr, stride: sp.Expr, rounded: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """*keys* over *stride*, rounded; whole strides stand outside."""
    whole = sp.expand(keys).coeff(stride)
    return whole + rounded(sp.expand(keys - whole * stride) / stride)


def rows_in_any(ranges: list[Rows]) -> sp.Expr:
    """How many queries stand in any of *ranges*: those in each, less those in two, and so on."""
    total = ZERO
    for n in range(1, len(ranges) + 1):
        for chosen in combinations(ranges, n):
            begins, ends, some = zip(*chosen, strict=True)
            total -= (-1) ** n * sp.Mul(*some) * most(reduce(least, ends) - reduce(most, begins), ZERO)
    return total

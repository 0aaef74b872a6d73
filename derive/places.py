r"""The places that selected keys stand at: of the v keys that a query sees it selects n, and so uses places 0..min(v, n) - 1.

How many keys a query sees need not rise from one query to the next, as bounds of a mask do: in a chunk or a document it
begins again at one, and a window that looks ahead is cut short at the end. Counts over queries add up all the same,

    pairs = sum_q min(v(q), n),

in closed form where v is made of lines. With v(q) = min(a(q), c, b(q)), a rising by one a query from the first keys on, b
falling towards the last, and c between,

    sum_q min(v, n) = sum_q clamp(a, 0, m) + sum_q clamp(b, 0, m) - m N_q,    m = min(c, n),

since a + b >= 2 m: never are both below m. Where v is a line held at multiples of C, or begins again at given positions, runs
of queries that see 1, 2, 3, .. keys add up one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import sympy as sp

from derive.clamped import clamp, clamped, is_line, stair_of, steps_of
from derive.errors import DomainError
from derive.extremes import down, least, most, up
from derive.interval import ZERO
from derive.mask import Mask
from derive.steps import Steps
from derive.symbols import ROW


@dataclass(frozen=True)
class Places(Mask):
    """Which places of selected keys each query uses: the first ones, as many as it sees keys.

    Attributes:
        keys: the mask of the keys that are selected from; each query sees keys that stand together.
    """

    keys: Mask | None = None

    @property
    def source(self) -> Mask:
        """The mask of the keys that are selected from."""
        assert self.keys is not None
        return self.keys

    @property
    def rises(self) -> bool:
        """Whether a query plainly uses no fewer places than the one before."""
        window = _window(self.source)
        return self.source.starts_at_key_0 or (window is not None and not window.is_cut_short)

    @property
    def pairs(self) -> sp.Expr:
        """How many (query, place) pairs it keeps."""
        first, last = self.source.first, self.source.last
        if self.rises or first is None or last is None:
            return super().pairs
        if (window := _window(self.source)) is not None:
            top = least(window.most, self.columns)
            rising, falling = (clamped(x, top, ZERO, self.rows) for x in (window.from_first, ROW + window.to_last))
            return rising + falling - top * self.rows
        if self._chunk is not None:
            return self._in_chunks(*self._chunk)
        if (starts := steps_of(first)) == first and starts is not None:
            ends = steps_of(last)
            if last == ROW:
                return sp.Add(*(self._counted_up(n) for n in _lengths(starts, self.rows)))
            if ends is not None and ends - 1 == last:
                return sp.Add(*(n * least(n, self.columns) for n in _lengths(starts, self.rows)))
        return sp.Sum(least(_seen(self.source), self.columns), (ROW, 0, self.rows - 1))

    @property
    def _chunk(self) -> tuple[sp.Expr, sp.Expr] | None:
        """(C, a) where query q sees the keys from ``C floor((q + a)/C)`` to q + a."""
        first, last = self.source.first, self.source.last
        found = None if first is None else stair_of(first)
        return found if found is not None and last is not None and sp.expand(last - ROW) == found[1] else None

    def _in_chunks(self, size: sp.Expr, offset: sp.Expr) -> sp.Expr:
        keys, end = self.source.columns, sp.expand(offset + self.rows)

        def up_to(x: sp.Expr) -> sp.Expr:
            """Places of the queries whose own keys are those before *x*."""
            whole = down(x / size)
            return whole * self._counted_up(size) + self._counted_up(x - size * whole)

        found = up_to(clamp(end, keys)) - up_to(clamp(offset, keys))
        if end == keys:
            return found
        ragged = keys - size * down(keys / size)  # what queries past the last key see, while its chunk is theirs
        past = clamp(end - keys, size * up(keys / size) - keys) - clamp(offset - keys, size * up(keys / size) - keys)
        return found + least(ragged, self.columns) * past

    def _counted_up(self, length: sp.Expr) -> sp.Expr:
        """Places of queries that see 1, 2, .., *length* keys: ``m (m + 1)/2 + n (length - m)``, m = min(length, n)."""
        m = least(length, self.columns)
        return m * (m + 1) / 2 + self.columns * (length - m)

    @property
    def most_apart(self) -> sp.Expr:
        """The most keys that queries can select together: as many as some query sees, or one for each place.

        Each further query sees at most one key that no query before it saw, and selects at least one: no run of queries has
        fewer places than keys but the whole, and the first ones of a chunk that began before them.
        """
        seen = self.source.keys_touched
        if (chunk := self._chunk) is not None:
            seen -= most(self._left_in_the_first_chunk(*chunk), ZERO)
        return least(seen, self.pairs)

    def _left_in_the_first_chunk(self, size: sp.Expr, offset: sp.Expr) -> sp.Expr:
        """Keys less places of the queries in the chunk that the first query's own key stands in."""
        start = most(offset, ZERO)
        before = start - size * down(start / size)
        there = before + clamp(size - before, most(sp.expand(self.rows + least(offset, ZERO)), ZERO))
        return there - (self._counted_up(there) - self._counted_up(before))

    @property
    def rows_touched(self) -> sp.Expr:
        """How many queries use some place: those that see some key."""
        return self.source.rows_touched

    @property
    def blind_rows_stand_first(self) -> bool:
        """Whether queries that see no key plainly all stand before those that see one."""
        return self.source.blind_rows_stand_first

    @property
    def rows_blind_above(self) -> sp.Expr:
        """How many queries at the start see no key."""
        return self.source.rows_blind_above

    @property
    def some_row_sees_a_key(self) -> bool:
        """Whether the last query plainly sees one."""
        return self.source.some_row_sees_a_key

    @property
    def keys_touched(self) -> sp.Expr:
        """How many places some query uses.

        Raises:
            DomainError: queries do not see more and more keys, so that it is not the last one that tells.
        """
        if not self.rises:
            raise DomainError(f"how many places some query uses under {self.name} is not counted; ask for a query")
        return super().keys_touched


class _Window(NamedTuple):
    """Keys that stand around a query's own: v = min(from_first, most, what is left towards the last key).

    Attributes:
        from_first: keys from the first one of all to the last that the query sees, a line.
        most: how many it sees where no end is near.
        to_last: keys from the first that the last query sees to the last one of all.
    """

    from_first: sp.Expr
    most: sp.Expr
    to_last: sp.Expr

    @property
    def is_cut_short(self) -> bool:
        """Whether the last key may stand nearer to a query than it looks ahead."""
        return bool(least(self.to_last, self.most) != self.most)


def _window(keys: Mask) -> _Window | None:
    first, last = keys.first, keys.last
    if first is None or last is None or not (is_line(first) and is_line(last)):
        return None
    to_last = sp.expand(keys.columns - first.xreplace({ROW: keys.rows - 1}))
    return _Window(sp.expand(last + 1), sp.expand(last - first + 1), to_last)


def _seen(keys: Mask) -> sp.Expr:
    """v(q) for q = ``ROW``: how many keys it sees, none where it is not above 0."""
    if (window := _window(keys)) is not None:
        towards_last = sp.expand(window.to_last + keys.rows - 1 - ROW)
        return least(window.from_first, least(window.most, towards_last) if window.is_cut_short else window.most)
    begin, end = keys.span(keys.intervals[0], ROW, ROW)
    return end - begin


def places(keys: Mask, column: str, count: sp.Expr) -> Places:
    """The places, numbered by the index *column*, of the keys that queries select under the mask *keys*.

    Args:
        keys: a mask under which each query sees keys that stand together.
        column: name of the index of the places.
        count: how many there are, at most as many as keys.
    """
    says = f"{keys.says}, and attends to {count} of them, or to all where it sees fewer"
    seen = None if keys.first is None else _seen(keys)
    last = keys.last if seen is None else _less_one(seen)
    return Places(keys.name, says, keys.row, column, keys.rows, count, last=last, keys=keys)


def _less_one(seen: sp.Expr) -> sp.Expr:
    """The last place of so many."""
    return sp.Min(*(sp.expand(x - 1) for x in seen.args), evaluate=False) if seen.func is sp.Min else seen - 1


def _lengths(starts: Steps, rows: sp.Expr) -> list[sp.Expr]:
    """How many queries each step of a step function has, the last up to *rows*."""
    runs = [start for start, _ in starts.runs]
    return [*(sp.Integer(b - a) for a, b in pairwise(runs)), rows - runs[-1]]

"""Which keys a query sees: a union of intervals ``first(q) <= k <= last(q)``; pairs and keys follow from their bounds.

Every bound rises or stays put from a query to the next, so clamped bounds add up in closed form, as ``derive.clamped`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import sympy as sp

from derive.clamped import clamp, clamped, is_line, stair_of, stairs, stepped, steps_of
from derive.extremes import floor_of, least, most, up
from derive.interval import Interval, rows_in_any, rows_that_see
from derive.symbols import COPY, ROW

ZERO, ONE = sp.Integer(0), sp.Integer(1)
Span = tuple[sp.Expr, sp.Expr]
"""The first key and one past the last; nothing where the second is not above the first."""


@dataclass(frozen=True)
class Mask:
    """The keys that each query sees.

    Attributes:
        name: what a person calls it, e.g. ``causal``.
        says: the convention in words, printed wherever the mask is used.
        row, column: names of the query and the key index.
        rows, columns: their extents.
        first, last: the ends of its interval, as in ``Interval``.
        others: further intervals, disjoint from it and from each other, in the order of their keys.
        since, until, copies: the rest of the first interval.
        part: name of the index that says which of *parts* equal parts a key is in, where the key index runs inside one; its
            bounds stay positions among all ``columns`` keys.
        parts: how many there are.
    """

    name: str
    says: str
    row: str
    column: str
    rows: sp.Expr
    columns: sp.Expr
    first: sp.Expr | None = None
    last: sp.Expr | None = None
    others: tuple[Interval, ...] = ()
    since: sp.Expr | None = None
    until: sp.Expr | None = None
    copies: sp.Expr = ONE
    part: str = ""
    parts: sp.Expr = ONE

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the indices that its pairs stand along: row, part where there are parts, column."""
        return (self.row, self.part, self.column) if self.part else (self.row, self.column)

    @property
    def part_length(self) -> sp.Expr:
        """Keys of one part."""
        return self.columns / self.parts

    def cut(self, part: str, parts: sp.Expr) -> Mask:
        """The same pairs, keys being counted inside each of *parts* equal parts that the index *part* numbers."""
        return replace(self, part=part, parts=parts)

    def inside(self, number: sp.Expr) -> Mask:
        """What it keeps of part *number*, a mask over the keys of that part alone."""
        start = number * self.part_length
        ends = [replace(i, first=_shifted(i.first, start), last=_shifted(i.last, start)) for i in self.intervals]
        first, *others = ends
        alone = replace(self, columns=self.part_length, part="", parts=ONE)
        return replace(alone, first=first.first, last=first.last, others=tuple(others))

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """All of its intervals."""
        return (Interval(self.first, self.last, self.since, self.until, self.copies), *self.others)

    @property
    def is_one_interval(self) -> bool:
        """Whether each query sees keys that stand together."""
        return not self.others and self.copies == 1 and self.since is None and self.until is None

    @property
    def starts_at_key_0(self) -> bool:
        """Whether each query sees the keys from the first one on."""
        return self.is_one_interval and self.first is None

    def span(self, interval: Interval, first_row: sp.Expr, last_row: sp.Expr) -> Span:
        """The keys of *interval* that some query from *first_row* to *last_row* sees."""
        top, bottom = first_row, last_row
        if interval.since is not None:
            top = most(top, interval.since)
        if interval.until is not None:
            bottom = least(bottom, interval.until - 1)
        begin = ZERO if interval.first is None else self._clamp(interval.first.xreplace({ROW: top}))
        end = self.columns if interval.last is None else self._clamp(interval.last.xreplace({ROW: bottom}) + 1)
        if interval.since is not None:
            end = least(end, self.columns * most(last_row - interval.since + 1, ZERO))
        if interval.until is not None:
            end = least(end, self.columns * most(interval.until - first_row, ZERO))
        return begin, end

    def is_past_the_keys(self, interval: Interval, row: sp.Expr) -> sp.Expr:
        """Above 0 where *interval* begins past the last key for *row*; 0 when that plainly never happens."""
        if interval.first is None or self._last_row_sees(interval):
            return ZERO
        return most(sp.expand(interval.first.xreplace({ROW: row}) - self.columns + 1), ZERO)

    def _last_row_sees(self, interval: Interval) -> bool:
        """Whether the last query plainly sees a key of *interval*, and hence none is past the keys."""
        at = {ROW: self.rows - 1, COPY: interval.copies - 1}
        ends = (end.xreplace(at) for end in (interval.first, interval.last) if end is not None)
        return any(floor_of(sp.expand(self.columns - 1 - end)) >= 0 for end in ends)

    @property
    def pairs(self) -> sp.Expr:
        """How many (query, key) pairs it keeps."""
        return sp.Add(*(self.pairs_of(interval) for interval in self.intervals))

    def pairs_of(self, interval: Interval) -> sp.Expr:
        """How many pairs of one of its intervals it keeps."""
        since = ZERO if interval.since is None else least(interval.since, self.rows)
        until = self.rows if interval.until is None else least(interval.until, self.rows)
        ends = interval.first, interval.last
        if self.rows == 1 and interval.copies == 1:
            begin, end = self.span(interval, ZERO, ZERO)
            return end - begin if interval.since is None and interval.until is None else most(end - begin, ZERO)
        if interval.copies != 1:
            first, last = ends[0] or ZERO, ends[1] or self.columns - 1
            if first != last or not is_line(first):
                raise NotImplementedError(f"copies of more than one key a query: {interval}")
            before = first.xreplace({ROW: ZERO})  # the keys of queries since.. are before + since .. before + until - 1
            seen = most(least(until, self.columns - before) - most(since, -before), ZERO)
            return sp.Sum(seen, (COPY, 0, interval.copies - 1))
        return self._total(ends[1], 1, self.columns, since, until) - self._total(ends[0], 0, ZERO, since, until)

    def _total(self, bound: sp.Expr | None, past: int, otherwise: sp.Expr, since: sp.Expr, until: sp.Expr) -> sp.Expr:
        """``clamp(bound + past)`` summed over the queries from *since* to *until* - 1."""
        if bound is None:
            return (until - since) * otherwise
        extreme = bound.func if bound.func in (sp.Min, sp.Max) else None
        parts = [sp.expand(part + past) for part in (bound.args if extreme else (bound,))]
        x = extreme(*parts, evaluate=False) if extreme else parts[0]
        if not x.has(ROW):
            return (until - since) * self._clamp(x)
        if is_line(x):
            return clamped(x, self.columns, since, until)
        line = next((part for part in parts if is_line(part)), None)
        if extreme and line is not None and len(parts) == 2:
            held = self._clamp(next(part for part in parts if part != line))
            if extreme is sp.Min:
                return clamped(line, held, since, until)
            above = clamped(line, self.columns, since, until) - clamped(line, held, since, until)
            return (until - since) * held + above
        if (stair := stair_of(x)) is not None and past == 0:
            size, offset = stair
            return stairs(until - 1 + offset, size, self.columns) - stairs(since - 1 + offset, size, self.columns)
        if (found := steps_of(x)) is not None and since == 0:
            return stepped(found, until) + (x - found) * until
        return sp.Sum(self._clamp(x), (ROW, since, until - 1))

    def _clamp(self, x: sp.Expr) -> sp.Expr:
        return clamp(x, self.columns)

    @property
    def keys_touched(self) -> sp.Expr:
        """How many keys some query sees."""
        return united([(i, self.span(i, ZERO, self.rows - 1)) for i in self.intervals])

    @property
    def rows_touched(self) -> sp.Expr:
        """How many queries see some key."""
        if self.blind_rows_stand_first:
            return self.rows - self.rows_blind_above
        if self.copies != 1:
            return self._rows_with_a_copy()
        ranges = [rows_that_see(interval, self.rows, self.columns) for interval in self.intervals]
        if None not in ranges:
            return rows_in_any([found for found in ranges if found is not None])
        seen = [end - begin for begin, end in (self.span(i, ROW, ROW) for i in self.intervals)]
        some = least(sp.Add(*(most(s, ZERO) for s in seen)), ONE)
        return sp.Sum(some, (ROW, 0, self.rows - 1))

    def _rows_with_a_copy(self) -> sp.Expr:
        """How many queries see one of the copies, each a single key: the last one that is not past the keys tells."""
        assert self.first is not None
        nearest = self.first.xreplace({COPY: self.copies - 1})
        stride = sp.expand(nearest - self.first.xreplace({COPY: self.copies - 2}))
        skipped = most(up((nearest - self.columns + 1) / stride), ZERO)
        some = least(self.copies - skipped, nearest - stride * skipped + 1)
        return sp.Sum(clamp(some, ONE), (ROW, 0, self.rows - 1))

    @property
    def blind_rows_stand_first(self) -> bool:
        """Whether queries that see no key plainly all stand before those that see one."""
        final = self.intervals[-1]
        some = final.first is None or self._last_row_sees(final)
        return some and final.since is None and final.until is None

    @property
    def rows_blind_above(self) -> sp.Expr:
        """How many queries at the start see no key, since their last one would stand before key 0."""
        last = self.intervals[-1].last
        if last is None or floor_of(last) >= 0:
            return ZERO
        return self._rows_below_0(last.xreplace({COPY: self.intervals[-1].copies - 1}))

    def _rows_below_0(self, bound: sp.Expr) -> sp.Expr:
        """How many queries have a bound below 0; it rises, so they stand first."""
        if bound.func in (sp.Min, sp.Max):
            one, *others = (self._rows_below_0(sp.expand(end)) for end in bound.args)
            return reduce(least if bound.func is sp.Max else most, others, one)
        if not bound.has(ROW):
            return least(self.rows, self.rows * most(-bound, ZERO))
        if is_line(bound):
            return clamp(-bound.xreplace({ROW: ZERO}), self.rows)
        return sp.Sum(least(most(-bound, ZERO), ONE), (ROW, 0, self.rows - 1))

    @property
    def some_row_sees_a_key(self) -> bool:
        """Whether the last query plainly sees one; not so where the keys are those of one part of several."""
        last = self.intervals[-1].last
        at = {ROW: self.rows - 1, COPY: self.intervals[-1].copies - 1}
        return last is None or floor_of(sp.expand(last.xreplace(at))) >= 0


def _shifted(bound: sp.Expr | None, by: sp.Expr) -> sp.Expr | None:
    """A bound counted from key *by*."""
    if bound is None:
        return None
    if bound.func in (sp.Min, sp.Max):
        return bound.func(*(sp.expand(end - by) for end in bound.args))
    return sp.expand(bound - by)


def united(spans: list[tuple[Interval, Span]]) -> sp.Expr:
    """How many positions *spans* cover together; each begins no earlier than those before it."""
    total, reached = ZERO, None
    for interval, span in spans:
        total += copies_united(interval, span, reached)
        ends = reach(interval, span)
        reached = ends if reached is None else most(reached, ends)
    return total


def reach(interval: Interval, span: Span) -> sp.Expr:
    """One past the last key of a span, or of the last of its copies."""
    return span[1] if interval.copies == 1 else span[1].xreplace({COPY: interval.copies - 1})


def copies_united(interval: Interval, span: Span, reached: sp.Expr | None) -> sp.Expr:
    """How many positions the copies of *span* cover past *reached*, which is where what stands before them ends.

    Each copy begins and ends no earlier than the one before it.
    """
    begin, end = span
    if interval.copies == 1:
        if reached is None and interval.since is None and interval.until is None:
            return end - begin
        return most(end - (begin if reached is None else most(begin, reached)), ZERO)
    once = most(end - most(begin, end.xreplace({COPY: COPY - 1})), ZERO)
    if reached is not None:
        raise NotImplementedError(f"copies behind another interval: {interval}")
    start = (end - begin).xreplace({COPY: ZERO})
    return start + sp.Sum(once, (COPY, 1, interval.copies - 1))


def causal(rows: sp.Expr, columns: sp.Expr, *, align: str = "bottom-right", row: str = "q", column: str = "k") -> Mask:
    """Each query sees the keys up to its own position.

    Args:
        rows: number of queries.
        columns: number of keys.
        align: ``bottom-right`` puts the last query on the last key (a KV cache, FlashAttention from 2.1 on);
            ``top-left`` puts the first query on the first key (cuDNN, PyTorch's ``is_causal``).
        row: name of the query index.
        column: name of the key index.
    """
    offset = columns - rows if align == "bottom-right" else ZERO
    short = "causal" if align == "bottom-right" else "causal-tl"
    says = f"causal, {align}: query q sees keys 0..{'q + N_k - N_q' if align == 'bottom-right' else 'q'}"
    return Mask(short, says, row, column, rows, columns, last=sp.expand(ROW + offset))

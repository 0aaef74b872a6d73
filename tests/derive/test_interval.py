"""Which queries see a key of an interval, and of any of several, against queries looked at one by one."""

from __future__ import annotations

import sympy as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from derive.exact import value
from derive.interval import Interval, rows_in_any, rows_that_see
from derive.symbols import ROW

near = st.integers(-6, 12)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """A line, a held line or a stair at either end, for some of the queries; none but a late one is ever empty inside."""
    a, c, wide, size = draw(near), draw(st.integers(0, 6)), draw(st.integers(0, 4)), draw(st.integers(1, 4))
    begins, ends = ROW + a, ROW + a + wide
    kinds = {
        "all": (None, None),
        "up to": (None, ends),
        "held": (None, sp.Min(c, ends, evaluate=False)),
        "from": (begins, None),
        "band": (begins, ends),
        "late": (sp.Max(c, begins, evaluate=False), sp.Max(c - 1, ends, evaluate=False)),
        "stair": (size * sp.floor((ROW + a) / size, evaluate=False), ROW + a + wide),
        "some": (None, sp.Integer(c - 2)),
    }
    first, last = kinds[draw(st.sampled_from(sorted(kinds)))]
    since, until = (draw(st.none() | st.integers(0, 8).map(sp.Integer)) for _ in range(2))
    return Interval(first, last, since, until)


def who_see(interval: Interval, rows: int, columns: int) -> set[int]:
    """The queries, from the bounds alone."""
    found = set()
    for q in range(int(interval.since or 0), rows if interval.until is None else min(rows, int(interval.until))):
        first = 0 if interval.first is None else int(value(interval.first.xreplace({ROW: sp.Integer(q)}), {}))
        last = columns if interval.last is None else int(value(interval.last.xreplace({ROW: sp.Integer(q)}), {}))
        if max(first, 0) <= min(last, columns - 1):
            found.add(q)
    return found


@settings(max_examples=120)
@given(interval=intervals(), rows=st.integers(1, 9), columns=st.integers(1, 9))
@example(interval=Interval(sp.Max(2, ROW - 3), sp.Max(1, ROW - 1)), rows=5, columns=4)
@example(interval=Interval(3 * sp.floor((ROW + 2) / 3), ROW + 2), rows=6, columns=4)
def test_queries_that_see_a_key_stand_from_the_first_to_the_last(interval: Interval, rows: int, columns: int) -> None:
    """Told from the bounds for every interval that a mask has."""
    found = rows_that_see(interval, sp.Integer(rows), sp.Integer(columns))
    assert found is not None
    begin, end, some = (int(value(x, {})) for x in found)
    assert set(range(begin, end) if some else ()) == who_see(interval, rows, columns)


@settings(max_examples=200)
@given(
    several=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 1)), min_size=1, max_size=3),
)
def test_queries_in_any_of_several_ranges_are_counted_once(several: list[tuple[int, int, int]]) -> None:
    """Ranges that overlap, that are empty, and that are not there at all."""
    shown = {q for begin, end, some in several for q in range(begin, end) if some}
    assert rows_in_any([tuple(map(sp.Integer, each)) for each in several]) == len(shown)  # type: ignore[misc]

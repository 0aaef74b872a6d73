"""Bounds held between 0 and the number of keys, added up: each closed form against its sum, query by query."""

from __future__ import annotations

import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.clamped import clamped, stair_of, stairs, stepped, steps_of
from derive.exact import value
from derive.steps import steps
from derive.symbols import ROW

whole = st.integers(-9, 20)


def held(x: int, top: int) -> int:
    """Between 0 and *top*."""
    return max(0, min(x, top))


@given(offset=st.integers(-9, 9), top=st.integers(0, 9), since=st.integers(0, 9), more=st.integers(0, 9))
def test_a_held_line_adds_up(offset: int, top: int, since: int, more: int) -> None:
    """Of slope 1, from one query to another."""
    found = clamped(ROW + offset, sp.Integer(top), sp.Integer(since), sp.Integer(since + more))
    assert value(found, {}) == sum(held(q + offset, top) for q in range(since, since + more))


@given(x=whole, size=st.integers(1, 5), top=st.integers(1, 12))
def test_a_stair_adds_up_wherever_it_passes_the_keys(x: int, size: int, top: int) -> None:
    """Before the first key, exactly at the last, one past it, and far beyond."""
    for last in (x, top - 1, top, top + 1):
        found = stairs(sp.Integer(last), sp.Integer(size), sp.Integer(top))
        assert value(found, {}) == sum(held(size * (t // size), top) for t in range(last + 1))


@given(size=st.integers(1, 5), offset=whole)
def test_a_stair_is_told_by_its_step_and_its_start(size: int, offset: int) -> None:
    """C floor((q + a)/C) for any a; a multiple that does not undo the division is none."""
    assert stair_of(size * sp.floor((ROW + offset) / size, evaluate=False)) in (
        (size, offset),
        None if size == 1 else 0,
    )
    assert stair_of(3 * sp.floor(ROW / 2)) is None
    assert stair_of(ROW + offset) is None


@given(until=st.integers(7, 20))
def test_a_step_function_adds_up_to_its_last_step(until: int) -> None:
    """Documents of 3, 4 and more tokens, a constant apart."""
    found = steps_of(steps(ROW, [0, 3, 7], [0, 3, 7]) + 5)
    assert found is not None
    assert value(stepped(found, sp.Integer(until)), {}) == 4 * 3 + 7 * (until - 7)
    assert steps_of(ROW + steps(ROW, [0, 3], [0, 3])) is None

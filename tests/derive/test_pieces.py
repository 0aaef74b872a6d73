"""Sums of lines and floors over a range: which way they move, and what each step of them is, position by position."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.pieces import NoFastSumError, Piece, floor_sum, floored, stepped, winner

small = st.integers(-6, 6)
fractions = st.fractions(-3, 3, max_denominator=4)


@st.composite
def pieces(draw: st.DrawFn, first: int = 0, last: int = 9) -> Piece:
    """A line and up to two floors, some of them flat."""
    floors = draw(st.lists(st.tuples(fractions, small, small, st.integers(1, 5)), max_size=2))
    return Piece(first, last, draw(fractions), draw(fractions), tuple(floors))


@given(piece=pieces())
def test_a_piece_adds_up_and_moves_as_its_values_do(piece: Piece) -> None:
    """The total is the sum of the values; one that never falls never falls, and no flat one has a direction."""
    values = [piece.at(i) for i in range(piece.first, piece.last + 1)]
    assert piece.total() == sum(values)
    try:
        direction = piece.direction()
    except NoFastSumError:
        return
    assert values == sorted(values, reverse=direction < 0)
    assert (direction == 0) == (piece.slope == 0 and not any(c * a for c, a, _, _ in piece.floors))


@pytest.mark.parametrize(
    ("c", "a", "direction"), [(1, 0, 0), (Fraction(-1, 3), 1, -1), (Fraction(1, 3), 1, 1), (-1, -2, 1)]
)
def test_the_sign_of_a_floor_is_that_of_its_line(c: Fraction, a: int, direction: int) -> None:
    """A floor of a constant is flat, and a small share of a floor falls as a whole one does."""
    assert Piece(0, 5, Fraction(0), Fraction(0), ((Fraction(c), a, 3, 2),)).direction() == direction


@given(left=pieces(), right=pieces(), larger=st.booleans())
def test_the_winner_is_the_extreme_at_every_position(left: Piece, right: Piece, larger: bool) -> None:
    """Cut where they cross, whichever of the two it is."""
    try:
        found = winner(left, right, larger)
    except NoFastSumError:
        return
    shown = [piece.at(i) for piece in found for i in range(piece.first, piece.last + 1)]
    assert shown == [(max if larger else min)(left.at(i), right.at(i)) for i in range(10)]


@given(slope=fractions, constant=fractions, share=st.fractions(-1, 1, max_denominator=3), a=small, b=small)
def test_a_floor_is_the_floor_at_every_position(
    slope: Fraction, constant: Fraction, share: Fraction, a: int, b: int
) -> None:
    """Of a line, and of a share of one floor."""
    for piece in (
        Piece(0, 9, slope, constant),
        Piece(0, 9, Fraction(0), constant, ((share, a, b, 3),)),
        Piece(0, 9, Fraction(2), constant, ((Fraction(1), a, b, 3), (Fraction(2), b, a, 2))),
    ):
        try:
            found = floored(piece)
        except NoFastSumError:
            continue
        assert [found.at(i) for i in range(10)] == [piece.at(i) // 1 for i in range(10)]
        assert found.floors or piece.floors or piece.slope.denominator == 1
        assert not (found.floors and not piece.floors and piece.slope.denominator == 1)  # whole steps need no floor


@given(slope=st.fractions(0, 3, max_denominator=4), constant=fractions, gaps=st.lists(st.integers(1, 4), max_size=4))
def test_steps_of_a_piece_are_the_last_start_it_has_reached(
    slope: Fraction, constant: Fraction, gaps: list[int]
) -> None:
    """Position by position; below the first start it has the first value."""
    starts = [0]
    for gap in gaps:
        starts.append(starts[-1] + gap)
    runs = [(start, 7 * n + 1) for n, start in enumerate(starts)]
    piece = Piece(2, 9, slope, constant)
    found = stepped(piece, runs)
    shown = [part.at(i) for part in found for i in range(part.first, part.last + 1)]
    assert shown == [max((v for s, v in runs if s <= piece.at(i)), default=1) for i in range(2, 10)]
    with pytest.raises(NoFastSumError, match="falls"):
        stepped(Piece(2, 9, Fraction(-1), constant), runs)


@given(n=st.integers(0, 12), m=st.integers(1, 7), a=small, b=small)
def test_a_floor_sum_is_the_sum_of_floors(n: int, m: int, a: int, b: int) -> None:
    """Any signs."""
    assert floor_sum(n, m, a, b) == sum((a * i + b) // m for i in range(n))

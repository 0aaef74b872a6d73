"""The least and the greatest of several counts, and what is plainly never below what."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.extremes import down, floor_of, greatest, least, most, up
from derive.symbols import N, d


@pytest.mark.parametrize("counts", [(N, N + 1, N + d), (N + d, N + 1, N), (N + 1, N, N + d), (N + 1, N + d, N)])
def test_what_is_plainly_below_another_is_no_candidate(counts: tuple[sp.Expr, ...]) -> None:
    """Whatever the order: one candidate is left of three, and nothing is left to be decided."""
    a, b, c = counts
    assert least(a, least(b, c)) == least(least(a, b), c) == N
    assert most(a, most(b, c)) == most(most(a, b), c) == N + d
    assert greatest(counts) == N + d


@pytest.mark.parametrize("counts", [(2 * N, N * d, N**2 + 1), (N**2 + 1, 2 * N, N * d), (N * d, N**2 + 1, 2 * N)])
def test_what_is_not_plain_stays(counts: tuple[sp.Expr, ...]) -> None:
    """N d and N^2 + 1 side by side: either may be the larger; what is no larger than another is gone."""
    assert greatest((*counts, N, N + 1)) == sp.Max(*counts, evaluate=False)
    assert greatest((N - 1, N, 2 * d)) == sp.Max(N, 2 * d, evaluate=False)
    assert greatest((N, N - 1, 2 * d)) == sp.Max(N, 2 * d, evaluate=False)


def test_what_all_have_stands_before_the_maximum() -> None:
    """And a term is no more than a multiple of it by a size; one that is set against it once is not there twice."""
    assert greatest((2 * N + 4 * d, 3 * N + 2 * d)) == 2 * N + 2 * d + sp.Max(2 * d, N, evaluate=False)
    assert greatest((3 * N + d, 2 * N + N * d)) == 2 * N + sp.Max(N + d, N * d, evaluate=False)
    assert greatest((N + d, 2 * N * d)) == 2 * N * d
    assert greatest((N + 3, N * d + 3)) == N * d + 3
    assert greatest((N / d, N)) == N
    assert greatest((1 / d, N / d**2)) == sp.Max(1 / d, N / d**2, evaluate=False)


MONOMIALS = (sp.S.One, N, d, N * d, N**2, N / d, N * d**2)


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=len(MONOMIALS), max_size=len(MONOMIALS)), min_size=1, max_size=5),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_the_greatest_is_the_greatest_of_the_values(counts: list[list[int]], n: int, width: int) -> None:
    """Whatever was left out or taken before the maximum."""
    amounts = [sp.Add(*(c * m for c, m in zip(row, MONOMIALS, strict=True))) for row in counts]
    numbers = {N: n, d: width}
    assert greatest(amounts).subs(numbers) == max(sp.sympify(a).subs(numbers) for a in amounts)


@pytest.mark.parametrize(
    ("count", "floor"),
    [
        (N, 1), (N + d, 2), (2 * N * d, 2), (N - d, -1), ((N - d) ** 2, -1), (N**2, 0), (sp.ceiling(N / d), 1),
        (sp.ceiling((N - 1) / d), 0), (sp.floor(N / d), 0), (sp.ceiling((N - d) / 2), -1), (sp.Max(N - d, 1), 1),
        (sp.Min(N, 0), 0), (sp.Mod(N, d), -1),
    ],
)  # fmt: skip
def test_a_floor_is_never_above_the_value(count: sp.Expr, floor: int) -> None:
    """What is known of each, and that it holds at small sizes."""
    assert floor_of(count) == floor
    values = [count.subs({N: n, d: width}) for n in range(1, 6) for width in range(1, 6)]
    assert floor == -1 or floor <= min(values)  # -1 where nothing is known


def test_what_is_not_plain_is_kept_once() -> None:
    """N and d stay side by side, however often either is named."""
    assert least(N, d) == least(least(N, d), N) == least(d, least(N, d)) == sp.Min(N, d, evaluate=False)
    assert most(N, d) == most(most(N, d), N) == most(d, most(N, d)) == sp.Max(N, d, evaluate=False)


@pytest.mark.parametrize(
    ("amount", "floor"),
    [
        (sp.Integer(3), 3),
        (sp.Rational(7, 2), 3),
        (N, 1),
        (N + 2, 3),
        (N * (d + 1), 2),
        (N - 1, 0),
        (N - 2, -1),
        (-N, -1),
        (sp.ceiling(N / d), 1),
        (sp.floor(N / d), 0),
        (sp.Min(N + 3, d + 1, evaluate=False), 2),
        (sp.Max(N + 3, d + 1, evaluate=False), 4),
        (1 / N, 0),
    ],
)
def test_no_count_is_below_its_floor(amount: sp.Expr, floor: int) -> None:
    """Extents are at least 1, so much follows without asking; -1 says that nothing does."""
    assert floor_of(amount) == floor


def test_rounding_leaves_what_is_whole() -> None:
    """And one part of several is rounded up to one."""
    assert up(N) == down(N) == N
    assert up(1 / N) == 1
    assert up(sp.Rational(7, 2)) == 4
    assert down(sp.Rational(7, 2)) == 3

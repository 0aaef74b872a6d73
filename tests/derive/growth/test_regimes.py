"""The best schedule by region: what exact attention's theorems say, and the minimum at random points."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from random import Random

import pytest
import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.growth import Growth, Regime, regimes
from derive.growth.cone import Cone
from derive.growth.parameters import Condition, Parameters, exponents_of
from derive.growth.program import region_of
from derive.symbols import M, d, d_v, h, h_k
from tests.derive.growth.known import KEPT, SCHEDULES, N, class_of
from tests.derive.growth.vertices import inner

TILED = ("square", "row-resident", "flash1", "flash2")
"""Schedules whose every product has tiles that must fit; others leave them to a library."""
SHARED = (h_k, h)


@cache
def table(kept: str, names: tuple[str, ...], where: tuple[Condition, ...] = ()) -> tuple[Regime, ...]:
    """The regimes of some schedules."""
    classes, parameters = classes_of(kept, names)
    return regimes(classes, region_of(parameters, where), parameters)


def classes_of(kept: str, names: tuple[str, ...]) -> tuple[dict[str, Growth], Parameters]:
    """Their classes, which speak of the same parameters."""
    classes = {name: class_of(name, kept) for name in names}
    (parameters,) = {c.parameters for c in classes.values()}
    return classes, parameters


def found_in(rows: tuple[Regime, ...]) -> dict[sp.Expr, tuple[set[Condition], set[str]]]:
    """Conditions and winners by class, where each has one region."""
    assert len({row.monomial for row in rows}) == len(rows)
    return {row.monomial: (set(row.conditions), set(row.schedules)) for row in rows}


def test_exact_attention_crosses_over_at_d_squared() -> None:
    """Theta(min(N^2 d/sqrt(M), N^2 d^2/M) + N d). Saha & Ye 2024, arXiv:2402.07443, theorem 3.1.

    Square tiles while M <= d^2, FlashAttention from there to N d, the inputs and outputs beyond; the scores themselves are
    no larger than any of these, but where d exceeds N.
    """
    rows = found_in(table("mha", TILED, ((d, N),)))
    assert rows[N**2 * d / sp.sqrt(M)] == ({(M, d**2)}, {"square"})
    assert rows[N**2 * d**2 / M] == ({(d**2, M), (M, N * d)}, {"flash1", "flash2"})
    assert rows[N * d][0] == {(N * d, M)}
    assert {"flash1", "flash2"} <= rows[N * d][1]
    assert len(rows) == 3


@pytest.mark.parametrize("head", [d, d_v])
def test_the_wider_head_decides(head: sp.Symbol) -> None:
    """With d and d_v apart the crossovers are those of the larger."""
    other = d_v if head is d else d
    rows = found_in(table("apart", TILED, ((d, N), (d_v, N), (other, head))))
    assert rows[N**2 * head / sp.sqrt(M)] == ({(M, head**2)}, {"square"})
    assert rows[N**2 * head**2 / M] == ({(head**2, M), (M, N * head)}, {"flash1", "flash2"})
    assert rows[N * head][0] == {(N * head, M)}


def test_shared_heads_change_factors_and_no_crossover() -> None:
    """Scores belong to query heads, so every term has their number in front while these are at least the key heads."""
    rows = found_in(table("gqa", TILED, ((d, N), SHARED)))
    assert rows[N**2 * d * h / sp.sqrt(M)] == ({(M, d**2)}, {"square"})
    assert rows[N**2 * d**2 * h / M] == ({(d**2, M), (M, N * d)}, {"flash1", "flash2"})
    assert rows[N * d * h][0] == {(N * d, M)}


def test_rows_that_fit_are_best_with_the_others() -> None:
    """Whole rows of scores on chip reach the least once N^2 <= M, and nothing before."""
    (row,) = (r for r in table("mha", ("row-resident",)) if r.monomial == N * d)
    assert set(row.conditions) >= {(N**2, M)}
    for row in table("mha", TILED, ((d, N),)):
        assert "row-resident" not in row.schedules


def test_a_small_memory_leaves_flash_attention_out() -> None:
    """Below d elements no tile of it fits, however many scores it would save."""
    rows = table("mha", ("flash2", "square"), ((M, d),))
    assert all(row.schedules == ("square",) for row in rows)
    assert table("mha", ("flash2",), ((M, d),)) == ()


def least(classes: dict[str, Growth], at: tuple[Fraction, ...]) -> dict[str, Fraction]:
    """The logarithm of each class at a point, of those schedules that can run there."""
    found = {}
    for name, growth in classes.items():
        if all(inner(growth.parameters.normal(c), at) >= 0 for c in growth.needs):
            found[name] = max(inner(growth.parameters.form(exponents_of(m)), at) for m in growth.monomials)
    return found


questions = st.tuples(
    st.sampled_from(sorted(KEPT)), st.lists(st.sampled_from(SCHEDULES), min_size=1, unique=True).map(tuple)
)


@settings(max_examples=30)
@given(questions, st.integers(0, 2**20))
def test_the_winner_is_the_least_of_all_at_random_points(question: tuple[str, tuple[str, ...]], seed: int) -> None:
    """A region's class is the minimum over schedules, its schedules reach it, and every point where one runs has a region.

    On a boundary, where another schedule just begins to fit, the region on the other side has the minimum.
    """
    classes, parameters = classes_of(*question)
    rows, random = table(*question), Random(seed)
    for _ in range(40):
        at = tuple(Fraction(random.choice((0, 1, 2, 3, 5, 8, random.randint(0, 40)))) for _ in parameters.symbols)
        values = least(classes, at)
        inside = [row for row in rows if all(inner(n, at) >= 0 for n in row.region.normals)]
        assert bool(values) == bool(inside)
        forms = [inner(parameters.form(exponents_of(row.monomial)), at) for row in inside]
        assert min(forms, default=None) == min(values.values(), default=None)
        for row, form in zip(inside, forms, strict=True):
            assert all(values[name] == form for name in row.schedules)
            if all(inner(n, at) > 0 for n in row.region.normals):
                event("inside")
                assert form == min(values.values())


@pytest.mark.parametrize("kept", sorted(KEPT))
def test_conditions_are_the_region_and_each_is_needed(kept: str) -> None:
    """They bound it within what was asked about, and no region lies in another of the same class."""
    classes, parameters = classes_of(kept, TILED)
    whole = Cone.orthant(len(parameters.symbols))
    rows = table(kept, TILED)
    for row in rows:
        forms = [parameters.normal(c) for c in row.conditions]
        assert set(whole.cut_all(forms).rays) == set(row.region.rays)
        assert all(set(whole.cut_all(f for f in forms if f != form).rays) != set(row.region.rays) for form in forms)
        assert row.schedules
        for other in rows:
            if other is not row and other.monomial == row.monomial:
                assert not all(other.region.implies(n) for n in row.region.normals)
    assert set(classes) >= {name for row in rows for name in row.schedules}

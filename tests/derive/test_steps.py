"""Step functions: the value of the last start reached, one step alone a number, and printed as cases that read back."""

from __future__ import annotations

from itertools import accumulate

import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.evaluate import number
from derive.exact import value
from derive.steps import Steps, steps

X = sp.Symbol("x", integer=True)


@given(gaps=st.lists(st.integers(1, 5), max_size=5), x=st.integers(-3, 30))
def test_a_number_has_the_value_of_the_last_start_that_it_reaches(gaps: list[int], x: int) -> None:
    """And what is printed says the same; below 0 it is the first value."""
    starts = [0, *accumulate(gaps)]
    values = [10 * n + 7 for n in range(len(starts))]
    found = steps(X, starts, values)
    expected = max((v for s, v in zip(starts, values, strict=True) if s <= x), default=7)
    assert steps(sp.Integer(x), starts, values) == expected
    assert found.subs(X, x) == expected
    assert number(found, {"x": x}) == value(found, {"x": x}) == expected
    assert sp.sympify(str(found), {"x": X}).subs(X, x) == expected


def test_one_step_is_a_number_and_several_are_none() -> None:
    """One document: every token's begins at 0, whatever the token."""
    assert steps(X, [0], [7]) == 7
    assert isinstance(steps(X, [0, 4], [0, 4]), Steps)


def test_in_latex_its_name_stands_for_the_list() -> None:
    """What it is a function of, and nothing else."""
    assert sp.latex(steps(X, [0, 4], [0, 4])) == r"\operatorname{steps}\left(x\right)"

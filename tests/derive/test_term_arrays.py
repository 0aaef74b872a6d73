"""All terms of a sum at once, against adding one by one."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.choice import cases
from derive.exact import Gcd, value
from derive.pieces import NoFastSumError
from derive.same import Same
from derive.steps import steps
from derive.symbols import B_c, B_r, N_k, N_q, d, dummy
from derive.term_arrays import Arrays, Terms

I, J = dummy("i"), dummy("j")  # noqa: E741
SUMMANDS = (
    B_c * sp.ceiling(sp.Max(0, sp.Min(N_k, B_r * (I + 1) + N_k - N_q)) / B_c) * I,
    sp.floor((sp.floor(I / B_r) + sp.ceiling(I / B_c)) / 2, evaluate=False) + Fraction(1, 3),
    cases((I**2, sp.Le(I * B_r, N_q, evaluate=False)), (d - I, sp.true)),
    steps(I - 2, [0, 3, 7], [1, 5, 6]) / B_c,
    Gcd(I + 4, B_c) * (1 + I * B_r),
    Same(sp.floor(I * B_c / B_r), sp.ceiling(I / 2)) * (1 + I),
    sp.Sum(sp.Max(0, N_q - I * J), (J, 0, B_r - 1)),
    sp.Sum(sp.floor((I + J) / B_c), (J, sp.floor(I / B_r), I + 1)),
)
numbers_ = st.fixed_dictionaries({name: st.integers(1, 30) for name in ("N_q", "N_k", "B_r", "B_c", "d")})


@pytest.mark.parametrize("summand", SUMMANDS, ids=str)
@given(numbers=numbers_, first=st.integers(-3, 5), count=st.integers(1, 30))
def test_terms_at_once_add_up_to_the_terms_one_by_one(
    summand: sp.Expr, numbers: dict[str, int], first: int, count: int
) -> None:
    """Extremes, roundings, cases, steps, fractions, and sums whose ends move with the index outside."""
    found = Arrays(lambda part: value(part, numbers), {}).total(summand, I, first, first + count - 1)
    assert found == sum(value(summand, {**numbers, "i": i}) for i in range(first, first + count))


def test_what_could_leave_64_bits_is_refused_before_it_is_computed() -> None:
    """Rather than wrap round; so is what no array is made of, and one over many numbers, or over nothing."""
    arrays = Arrays(lambda part: value(part, {"N_q": 2**40}), {})
    with pytest.raises(NoFastSumError):
        arrays.total(N_q * (I + N_q), I, 0, 3)
    with pytest.raises(NoFastSumError):
        arrays.total(sp.Mod(I, 3, evaluate=False), I, 0, 3)
    with pytest.raises(NoFastSumError):
        arrays.total(1 / (I + 1), I, 0, 16)
    with pytest.raises(NoFastSumError):
        arrays.total(1 / I, I, 0, 3)
    assert arrays.total(1 / (I + 1), I, 0, 3) == Fraction(25, 12)
    assert arrays.total(N_q + I, I, 0, 3) == 4 * 2**40 + 6
    large = Arrays(lambda part: value(part, {"N_q": 2**58}), {})
    assert large.total(N_q + 0 * I, I, 0, 3) == 2**60
    with pytest.raises(NoFastSumError):  # each term is far from the limit, their sum is past it
        large.total(N_q + 0 * I, I, 0, 15)


@given(
    tiles=st.lists(st.integers(1, 12), min_size=2, max_size=6),
    parts=st.integers(1, 9),
    width=st.fractions(Fraction(1, 9), 3, max_denominator=9),
)
def test_values_along_a_symbol_are_those_at_each_of_its_numbers(tiles: list[int], parts: int, width: Fraction) -> None:
    """Quotients, powers below zero, and sums whose ends move with the symbol; what stays is one number."""
    amount = d * B_r**-2 + sp.Sum(sp.Min(N_k, B_c * sp.ceiling((I + 1) * B_r / B_c)), (I, 0, sp.ceiling(N_k / B_r) - 1))
    points = [{"N_k": parts * t, "B_r": t, "B_c": 4, "d": width} for t in tiles]
    moving = {s: Terms.along(p[s.name] for p in points) for s in (N_k, B_r)}
    arrays = Arrays(lambda part: value(part, points[0]), moving)
    assert arrays.values(amount, len(points)) == [value(amount, p) for p in points]

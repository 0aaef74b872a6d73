"""Where a posynomial is least in one size: closed form, against values on both sides."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.stationary import least
from derive.symbols import B_r, C_k, N_q, d

powers = st.integers(-3, 3).filter(bool)
terms = st.dictionaries(powers, st.integers(1, 50), min_size=2, max_size=4)


def test_a_falling_and_a_rising_term_balance_at_the_root_of_their_ratio() -> None:
    """d/C + C is least at sqrt(d), whatever does not depend on C, and whatever stands in front."""
    found = least(N_q * (d / C_k + 4 * C_k + 7), C_k)
    assert found is not None
    assert found.point == sp.sqrt(d) / 2
    assert found.number({d: sp.Integer(64)}) == 4.0
    assert found.number({}) is None


@settings(max_examples=60)
@given(drawn=terms)
def test_it_is_less_there_than_on_either_side(drawn: dict[int, int]) -> None:
    """Within a thousandth of it, on both sides; and there is none where all terms rise or all fall."""
    amount = sp.Add(*(c * C_k**p for p, c in drawn.items()))
    found = least(amount, C_k)
    if min(drawn) > 0 or max(drawn) < 0:
        assert found is None
        return
    assert found is not None
    point = found.number({})
    assert point is not None
    here, below, above = (sum(c * x**p for p, c in drawn.items()) for x in (point, 0.999 * point, 1.001 * point))
    assert here < below
    assert here < above
    rises, falls = (float(side.subs(C_k, point)) for side in (found.rises, found.falls))
    assert rises == pytest.approx(falls)


def test_several_powers_on_a_side_have_an_equation_and_a_number() -> None:
    """1/C + C + C^2: no closed form is tried; it is least where 1/C = C + 2 C^2, at 0.6573."""
    found = least(1 / C_k + C_k + C_k**2, C_k)
    assert found is not None
    assert found.point is None
    assert sp.expand(found.rises - C_k - 2 * C_k**2) == 0
    assert found.falls == 1 / C_k
    assert found.number({}) == pytest.approx(0.6573, abs=1e-4)


@pytest.mark.parametrize(
    "amount",
    [
        sp.ceiling(N_q / C_k) + C_k,
        sp.Piecewise((C_k, C_k > d), (1 / C_k, True)),
        1 / (C_k + d) + C_k,
        C_k - 1 / C_k,
        N_q * d,
        C_k * B_r,
    ],
    ids=str,
)
def test_what_is_no_posynomial_with_both_has_none(amount: sp.Expr) -> None:
    """Rounded counts, cases, sums in a denominator, differences, and what only rises."""
    assert least(amount, C_k) is None

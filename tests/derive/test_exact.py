"""Exact evaluation: sums of any length against adding term by term."""

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive import exact
from derive.errors import DomainError, UnboundError
from derive.exact import Gcd, value
from derive.pieces import floor_sum
from derive.same import Same
from derive.symbols import B_c, B_r, N_k, N_q, d, dummy, h

I = dummy("i")  # noqa: E741


@given(n=st.integers(0, 40), m=st.integers(1, 25), a=st.integers(-40, 40), b=st.integers(-60, 60))
def test_floor_sum_equals_adding_term_by_term(n: int, m: int, a: int, b: int) -> None:
    """Sum floor((a i + b)/m) by the Euclidean algorithm is the plain sum, for any signs."""
    assert floor_sum(n, m, a, b) == sum((a * i + b) // m for i in range(n))


SUMMANDS = (
    sp.ceiling(sp.Max(0, sp.Min(N_k, B_r * (I + 1) + N_k - N_q)) / B_c),
    sp.Min(N_k, B_c * sp.ceiling(sp.Max(0, sp.Min(N_k, B_r * (I + 1) + N_k - N_q)) / B_c)),
    sp.ceiling(sp.Max(0, sp.Min(N_k, sp.floor((sp.Min(B_r * (I + 1), N_q * h) - 1) / h) + 1 + N_k - N_q)) / B_c),
    sp.Min(1, sp.ceiling(sp.Max(0, N_k - B_r * I) / B_c)),
    3 * I + sp.floor((5 - I) / B_c) / 2,
    Same(sp.floor(I * B_c / B_r), h) * sp.Min(B_r, N_q - 3 * I),
    Same(sp.ceiling(I / B_c), sp.floor((N_q - I) / B_r)) * sp.floor(I / 2),
)


@pytest.mark.parametrize("summand", SUMMANDS)
@given(
    numbers=st.fixed_dictionaries(
        {"N_q": st.integers(1, 200), "N_k": st.integers(1, 200), "B_r": st.integers(1, 30), "B_c": st.integers(1, 30),
         "h": st.integers(1, 5)}
    ),
    last=st.integers(-1, 60),
)  # fmt: skip
def test_fast_sums_equal_adding_term_by_term(summand: sp.Expr, numbers: dict[str, int], last: int) -> None:
    """A sum over tiles is the same whether it is cut into lines or added one by one."""
    direct = sum(value(summand, {**numbers, "i": i}) for i in range(last + 1))
    original, exact.MAX_DIRECT_TERMS = exact.MAX_DIRECT_TERMS, 0
    try:
        assert value(sp.Sum(summand, (I, 0, last)), numbers) == direct
    finally:
        exact.MAX_DIRECT_TERMS = original


def test_a_sum_of_10_to_the_16_terms_is_exact() -> None:
    """Causal tiles at N = 10^18 with tiles that divide: T (T + 1)/2."""
    n, tile = 10**18, 125
    tiles = sp.Sum(sp.ceiling(sp.Min(N_k, B_r * (I + 1)) / B_c), (I, 0, sp.ceiling(N_k / B_r) - 1))
    trips = n // tile
    assert value(tiles, {"N_k": n, "B_r": tile, "B_c": tile}) == trips * (trips + 1) // 2


def test_a_few_terms_far_out_are_added_up() -> None:
    """The length of a sum is bounded, not where it stands."""
    far = 10**6
    assert far > exact.MAX_DIRECT_TERMS
    assert value(sp.Sum(1 / (I + 1), (I, far, far + 2)), {}) == sum(Fraction(1, far + n) for n in (1, 2, 3))


def test_an_empty_sum_is_zero_not_negative() -> None:
    """SymPy's own convention gives -2 for a sum from 5 to 2; a count is never negative."""
    assert value(sp.Sum(sp.Integer(1), (I, 5, 2)), {}) == 0


def test_rounding_up_is_exact_past_the_doubles() -> None:
    """ceil(N/B) at 2^60 + 1, where a float rounds down."""
    assert value(sp.ceiling(N_q / B_r), {"N_q": 2**60 + 1, "B_r": 2}) == 2**59 + 1


def test_a_missing_value_names_its_symbol() -> None:
    """What is missing is said."""
    with pytest.raises(UnboundError, match="d has no value yet"):
        value(N_q * d, {"N_q": 3})


def test_division_by_zero_is_refused() -> None:
    """A zero divisor has no value."""
    with pytest.raises(DomainError, match="divides by zero"):
        value(N_q / d, {"N_q": 3, "d": 0})


def test_an_irrational_power_is_refused() -> None:
    """Exact means rational: a square root has no exact value here."""
    with pytest.raises(DomainError, match="power 1/2 is not whole"):
        value(sp.sqrt(N_q), {"N_q": 3})


def test_a_long_sum_without_a_fast_form_is_refused() -> None:
    """A summand of degree two is never added up term by term for minutes."""
    with pytest.raises(DomainError, match="no fast exact value"):
        value(sp.Sum(I**2, (I, 0, 10**9)), {})


def test_gcd_is_evaluated_once_numbers_are_there() -> None:
    """The greatest common divisor of symbols stays a symbol of its own."""
    assert value(Gcd(N_q, d), {"N_q": 132, "d": 64}) == 4


def test_a_condition_is_worth_one_or_nothing() -> None:
    """What holds always and what never holds, alone and as a case."""
    assert (value(sp.true, {}), value(sp.false, {})) == (1, 0)
    assert (
        value(sp.Piecewise((1, sp.And(sp.false, N_q > 3, evaluate=False)), (2, True), evaluate=False), {"N_q": 5}) == 2
    )


@given(n=st.integers(1, 400))
def test_a_floor_of_several_floors_adds_up_by_residues(n: int) -> None:
    """Each residue of the common period apart, where every floor is a line: as adding term by term."""
    summand = sp.floor((sp.floor(I / 2) + sp.floor(I / 3)) / 2, evaluate=False)
    found = value(sp.Sum(summand, (I, 0, N_q - 1)), {"N_q": n})
    assert found == sum((i // 2 + i // 3) // 2 for i in range(n))

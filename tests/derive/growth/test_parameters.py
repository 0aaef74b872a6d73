"""Monomials as linear forms, there and back; what is no monomial is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.errors import DomainError
from derive.growth.parameters import Parameters, exponents_of, split
from derive.symbols import M, d

N = sp.Symbol("N", positive=True, integer=True)
s = sp.Symbol("s", positive=True)
u = sp.Symbol("u", positive=True)
PARAMETERS = Parameters((M, N, d, s))
exponents = st.lists(st.fractions(-3, 3, max_denominator=4), min_size=4, max_size=4)


@given(exponents)
def test_forms_and_monomials_are_one_another_s_inverse(numbers: list[Fraction]) -> None:
    """Whatever the exponents; those of a fraction change sign."""
    monomial = sp.Mul(*(b ** sp.Rational(e) for b, e in zip(PARAMETERS.symbols, numbers, strict=True)))
    form = PARAMETERS.form(exponents_of(monomial))
    assert form == (*numbers[:3], -numbers[3])
    assert PARAMETERS.monomial(form) == monomial


@given(exponents.filter(any))
def test_conditions_and_forms_are_one_another_s_inverse(numbers: list[Fraction]) -> None:
    """Up to a positive power of both sides, which have whole positive exponents and nothing in common."""
    small, big = PARAMETERS.condition(numbers)
    back = PARAMETERS.normal((small, big))
    scale = next(x / y for x, y in zip(back, numbers, strict=True) if y)
    assert scale > 0
    assert [scale * x for x in numbers] == list(back)
    assert not small.free_symbols & big.free_symbols
    assert all(e > 0 and e.denominator == 1 for side in (small, big) for e in exponents_of(side).values())


def test_a_user_s_own_share_is_at_most_one() -> None:
    """Its form speaks of its reciprocal, like that of a block density."""
    shares = Parameters((N, u), frozenset({u}))
    assert shares.form({N: Fraction(1), u: Fraction(1)}) == (1, -1)
    assert shares.condition((0, 1)) == (u, 1)
    assert PARAMETERS.condition((0, 0, 0, 1)) == (s, 1)


def test_parameters_are_those_of_the_expressions() -> None:
    """In the order of their names, tiles left out."""
    assert Parameters.of((N * d, M * u), (u,)).symbols == (M, N, d)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (N + d, r"N \+ d is no monomial"),
        (2**N, r"2\^N is no monomial"),
        (N**d, r"N\^d is no monomial: N\^d is no power of a symbol with a rational exponent"),
        (sp.log(N) * d, r"d log\(N\) is no monomial: log\(N\) is no power of a symbol"),
    ],
)
def test_what_is_no_monomial_is_refused(expression: sp.Expr, says: str) -> None:
    """With the factor that is none."""
    with pytest.raises(DomainError, match=says):
        split(expression)


def test_a_number_in_front_is_refused() -> None:
    """A class leaves constants out."""
    assert split(3 * N) == (3, {N: 1})
    with pytest.raises(DomainError, match=r"3\*N has the number 3 in front; classes and regimes leave constants out"):
        exponents_of(3 * N)


def test_a_condition_on_something_else_is_refused() -> None:
    """It names all that is not known."""
    with pytest.raises(DomainError, match="N <= u speaks of u, which the count does not depend on"):
        PARAMETERS.normal((N, u))

"""Monomials and regimes as text: read back what is printed, and nothing that is not one."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.errors import BadValueError, UnknownNameError
from derive.growth.reading import N, read_condition, read_monomial
from derive.symbols import M, N_k, N_q, d, d_v, h
from outputs.notation import text

POWERS = st.fractions(min_value=-4, max_value=4, max_denominator=3)


@given(st.dictionaries(st.sampled_from([N, M, d, h, d_v]), POWERS, min_size=1))
def test_a_printed_monomial_reads_back(powers: dict[sp.Symbol, Fraction]) -> None:
    """Python's own notation: every exponent as a fraction."""
    above = [f"{s}**({e.numerator}/{e.denominator})" for s, e in powers.items() if e > 0]
    below = [f"{s}**({-e.numerator}/{e.denominator})" for s, e in powers.items() if e < 0]
    written = "*".join(above or ["1"]) + "".join(f"/{part}" for part in below)
    assert read_monomial(written) == sp.Mul(*(s ** sp.Rational(e) for s, e in powers.items()))


def test_house_notation_reads_back() -> None:
    """Spaces between factors, ^ for powers, square roots."""
    for monomial in (N**2 * d**2 / M, N**2 * d / sp.sqrt(M), N_q * N_k, d_v):
        assert read_monomial(text(monomial)) == monomial
    assert read_monomial("N^(2) d^(1/2)") == N**2 * sp.sqrt(d)


def test_names_are_the_symbols_or_the_keys_people_type() -> None:
    """Nq and N_q are one."""
    assert read_monomial("Nq dv") == read_monomial("N_q*d_v") == N_q * d_v


def test_a_chain_is_two_conditions() -> None:
    """D <= M <= N d, and the other way round."""
    assert read_condition("d <= M <= N d") == [(d, M), (M, N * d)]
    assert read_condition("N*d >= M") == [(M, N * d)]


@pytest.mark.parametrize(
    "words",
    [
        "2 N",
        "N + 1",
        "N//d",
        "",
        "N*",
        "N**",
        "N^",
        "N^-1",
        "N^(1/0)",
        "N^(2",
        "(N)",
        "sqrt(2)",
        "x" * 300,
        "N;d",
        "N\u00b2",
    ],
)
def test_what_is_no_monomial_is_refused(words: str) -> None:
    """One sentence, and nothing is evaluated."""
    with pytest.raises(
        (BadValueError, UnknownNameError), match=r"is no monomial|leave constants out|there is no symbol"
    ):
        read_monomial(words)


def test_a_huge_exponent_is_refused() -> None:
    """Sizes are bounded, so that no text takes long."""
    with pytest.raises(BadValueError, match="no exponent beyond 16"):
        read_monomial("N^99")
    with pytest.raises(BadValueError, match="is no monomial"):
        read_monomial("N^99999999999999999999")


@pytest.mark.parametrize("words", ["N", "N < M", "d = M", "d <=", "d <= M; import os", "<="])
def test_what_is_no_regime_is_refused(words: str) -> None:
    """Joined by <=, and by nothing else."""
    with pytest.raises(BadValueError, match=r"is no regime|is no monomial"):
        read_condition(words)


def test_a_regime_of_the_greatest_length_is_read_to_its_end() -> None:
    """200 characters, the last of them part of a name; one more is refused."""
    words = f"d <= M{' ' * 190}<= N"
    assert len(words) == 200
    assert read_condition(words) == [(d, M), (M, N)]
    with pytest.raises(BadValueError, match="is no regime"):
        read_condition(words.replace("<= N", " <= N"))

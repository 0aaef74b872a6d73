"""Regimes in words: divisors named together, nothing said twice, one letter for one regime."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from derive.laws import Regime
from derive.symbols import B_c, B_r, C, N, N_k, N_q, W
from outputs.regimes import Marks, number, regime_in_words


def test_divisors_of_the_same_sizes_are_named_together() -> None:
    """One size, several sizes, and a condition behind them."""
    fits = sp.Le(W, N, evaluate=False)
    assert regime_in_words(Regime((N / B_r,))) == "B_r divides N"
    assert regime_in_words(Regime((N / B_r, N / B_c), (fits,))) == "B_c and B_r divide N; W <= N"
    assert regime_in_words(Regime((N_q / B_r, N_k / B_r))) == "B_r divides N_k and N_q"
    assert regime_in_words(Regime((512 / B_r,))) == "B_r divides 512"
    assert regime_in_words(Regime()) == ""


def test_what_follows_from_the_rest_is_left_out() -> None:
    """N/B_c from N/B_r and B_r/B_c, N/B_r from N/(C B_r); a quotient beside an unlike one stays."""
    assert regime_in_words(Regime((N / B_r, N / B_c, B_r / B_c))) == "B_c divides B_r; B_r divides N"
    assert regime_in_words(Regime((N / B_r, N / (C * B_r)))) == "C B_r divides N"
    assert regime_in_words(Regime((N / B_r, N / (C * B_c)))) == "B_r and C B_c divide N"


def test_a_regime_has_one_letter_however_often_it_is_met() -> None:
    """And none where a law always holds; the notes say each once, in order."""
    marks = Marks()
    letters = [marks.of(Regime((N / t,))) for t in (B_r, B_c, B_r)]
    assert letters == [" [a]", " [b]", " [a]"]
    assert marks.of(Regime()) == ""
    assert marks.notes == ["[a] B_r divides N", "[b] B_c divides N"]


def test_numbers_are_in_groups_of_three_or_the_fractions_that_they_are() -> None:
    """8,192 and 1/8."""
    assert (number(8192), number(Fraction(1, 8)), number(Fraction(6, 2))) == ("8,192", "1/8", "3")

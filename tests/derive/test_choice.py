"""Case distinctions: what never holds and what nobody reaches is left out, and nothing else."""

from __future__ import annotations

import sympy as sp

from derive.choice import at_most, cases
from derive.symbols import N_k, N_q, d

SHORT, LONG = at_most(N_q, d), at_most(d, N_k)


def branches(form: sp.Expr) -> list[tuple[sp.Basic, sp.Basic]]:
    """Amounts and their conditions."""
    return [(amount, condition) for amount, condition in form.args]


def test_numbers_are_compared_and_symbols_are_not() -> None:
    """An inequality of symbols stays as it is written."""
    assert at_most(sp.Integer(2), sp.Integer(2)) == sp.true
    assert at_most(sp.Integer(3), sp.Integer(2)) == sp.false
    assert at_most(N_q, N_q) not in (sp.true, sp.false)


def test_what_never_holds_or_is_never_reached_is_left_out() -> None:
    """A false branch goes; behind one that always holds nothing is reached; where the first always holds it is all."""
    assert branches(cases((N_q, SHORT), (d, sp.false), (N_k, sp.true), (d, LONG))) == [(N_q, SHORT), (N_k, sp.true)]
    assert cases((N_q, sp.true), (N_k, SHORT)) == N_q
    assert cases((N_q, sp.false), (N_k, sp.true)) == N_k


def test_a_last_case_that_repeats_the_one_before_it_swallows_it() -> None:
    """N_q where short and N_q otherwise is N_q; one that differs, or stands further up, stays."""
    assert cases((N_q, SHORT), (N_q, sp.true)) == N_q
    assert branches(cases((d, LONG), (N_q, SHORT), (N_q, sp.true))) == [(d, LONG), (N_q, sp.true)]
    assert branches(cases((N_q, SHORT), (N_k, sp.true))) == [(N_q, SHORT), (N_k, sp.true)]
    assert branches(cases((N_q, SHORT), (d, LONG), (N_q, sp.true))) == [(N_q, SHORT), (d, LONG), (N_q, sp.true)]

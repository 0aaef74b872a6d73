"""Why a monomial is left out: every argument multiplies out, and there is none for what leads."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.growth import growth
from derive.growth.cone import Cone
from derive.growth.dominance import Dominated, dominated
from derive.growth.parameters import Parameters, exponents_of
from derive.growth.program import leading
from derive.symbols import M, d
from tests.derive.growth.known import KEPT, SCHEDULES, TIED, N, class_of, schedule_of

PARAMETERS = Parameters((M, N, d))
vectors = st.lists(st.integers(-3, 3).map(Fraction), min_size=3, max_size=3).map(tuple)


def multiplies_out(argument: Dominated) -> bool:
    """Whether the mean of what exceeds it is the monomial times ratios that are at least 1."""
    mean = sp.Mul(*(monomial ** sp.Rational(w) for monomial, w in argument.by.items()))
    ratios = sp.Mul(*((big / small) ** sp.Rational(c) for (small, big), c in argument.because))
    weights = [*argument.by.values(), *(c for _, c in argument.because)]
    same = sp.powsimp(sp.expand_power_base(mean / argument.monomial / ratios, force=True), force=True) == 1
    return same and sum(argument.by.values()) == 1 and min(weights) > 0


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("kept", sorted(KEPT))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_dropped_term_has_an_argument(schedule: str, kept: str, mask: str) -> None:
    """A weighted mean of the class's own monomials exceeds it by conditions of the region."""
    found = class_of(schedule, kept, mask)
    for argument in found.dropped:
        assert set(argument.by) <= set(found.monomials)
        assert multiplies_out(argument)


@settings(max_examples=150)
@given(st.lists(vectors, min_size=2, max_size=5), st.lists(vectors.filter(any), max_size=3))
def test_every_form_that_never_leads_is_dominated(
    forms: list[tuple[Fraction, ...]], cuts: list[tuple[Fraction, ...]]
) -> None:
    """And each that leads somewhere inside is not."""
    region = Cone.orthant(3).cut_all(cuts)
    if not region.has_interior:
        return
    kept = leading(region, forms)
    for form in dict.fromkeys(forms):
        if form not in kept:
            event("dominated")
            assert multiplies_out(dominated(PARAMETERS, region, form, kept))
        elif len(kept) > 1:
            event("leads")
            with pytest.raises(ValueError, match="leads somewhere in the region"):
                dominated(PARAMETERS, region, form, [f for f in kept if f != form])


def test_the_shortest_argument_is_given() -> None:
    """N d is below N^2 d^2/M by M <= N d alone."""
    found = growth(schedule_of("flash2"), TIED, where=[(d, M), (M, N * d)])
    (argument,) = (a for a in found.dropped if a.monomial == N * d)
    assert argument.by == {N**2 * d**2 / M: 1}
    assert argument.because == (((M, N * d), 1),)


def test_a_mean_of_two_may_be_needed() -> None:
    """N d is the geometric mean of N^2 and d^2: below their sum, though below neither everywhere."""
    forms = [PARAMETERS.form(exponents_of(m)) for m in (N**2, d**2, N * d)]
    argument = dominated(PARAMETERS, Cone.orthant(3), forms[2], forms[:2])
    assert argument.by == {N**2: Fraction(1, 2), d**2: Fraction(1, 2)}
    assert argument.because == ()

"""Classes against exact counts: slopes over growing sizes, both certificates at real tiles, masks, refusals."""

from __future__ import annotations

from fractions import Fraction
from math import log2

import pytest
import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.errors import DomainError
from derive.exact import value
from derive.growth import Growth, Lead, growth
from derive.growth.parameters import exponents_of
from derive.symbols import MEANINGS, M, N_k, N_q, d, symbol
from tests.derive.growth.known import KEPT, SCHEDULES, TIED, N, class_of, extent, held, moved, schedule_of, tiles_of
from tests.derive.growth.vertices import inner

questions = st.tuples(st.sampled_from(SCHEDULES), st.sampled_from(sorted(KEPT)), st.sampled_from(["full", "causal"]))


def exponent(lead: Lead, found: Growth, direction: tuple[int, ...]) -> Fraction:
    """The exponent of the monomial along *direction*."""
    return inner(found.parameters.form(exponents_of(lead.monomial)), direction)


@settings(max_examples=150)
@given(questions, st.integers(2, 3), st.integers(0, 1), st.data())
def test_the_slope_of_the_exact_count_is_the_exponent(
    question: tuple[str, str, str], base: int, odd: int, data: st.DataObject
) -> None:
    """In a random regime where a monomial leads, at the tiles that are said to reach it, sizes grow along a random line.

    On log-log paper the exact count, ceilings and masks included, then rises with the monomial's exponents; and the tiles
    need no more than a fixed multiple of M.
    """
    found = class_of(*question)
    schedule = schedule_of(*question)
    lead = data.draw(st.sampled_from(found.leads))
    region, tilings = data.draw(st.sampled_from(lead.tilings))
    weights = [data.draw(st.integers(1, 4)) for _ in region.rays]
    direction = tuple(
        2 * sum(w * ray[i] for w, ray in zip(weights, region.rays, strict=True)) for i in range(region.size)
    )
    event(f"{question[0]} {lead.monomial}")
    counts = []
    for step in (11, 12):
        power = dict(zip(found.parameters.symbols, direction, strict=True))
        numbers = {s.name: base ** (step * x) for s, x in power.items()}
        for tile in tiles_of(lead.kernel):
            size = sum((e * power[s] for s, e in exponents_of(tilings[tile]).items()), Fraction(0))
            assert size.denominator == 1
            numbers[tile.name] = base ** (step * int(size))
        numbers["N"] += odd
        assert all(1 <= numbers[t.name] <= extent(lead.kernel, t, numbers) for t in tiles_of(lead.kernel))
        if tiles_of(lead.kernel):
            assert held(schedule, lead.kernel, numbers) <= 8 * numbers["M"]
        counts.append(moved(schedule, lead.kernel, numbers))
    small, big = (log2(c.numerator) - log2(c.denominator) for c in counts)  # far beyond a float's range
    slope = (big - small) / log2(base)
    assert slope == pytest.approx(float(exponent(lead, found, direction)), abs=0.02)


@settings(max_examples=300)
@given(questions, st.integers(1, 200), st.data())
def test_no_tiles_that_fit_move_less(question: tuple[str, str, str], n: int, data: st.DataObject) -> None:
    """At random sizes and any tiles that fit M elements, the exact count is at least a fixed share of the class.

    And whatever fits satisfies what the class says it needs.
    """
    found, schedule = class_of(*question), schedule_of(*question)
    heads = data.draw(st.integers(1, 3))
    numbers = {"N": n, "d": data.draw(st.integers(1, 40)), "d_v": data.draw(st.integers(1, 40)), "h_k": heads}
    numbers |= {"h": heads * data.draw(st.integers(1, 3)), "M": data.draw(st.integers(1, 6000))}
    for lead in found.leads:
        chosen = {t.name: data.draw(st.integers(1, extent(lead.kernel, t, numbers))) for t in tiles_of(lead.kernel)}
        while tiles_of(lead.kernel) and held(schedule, lead.kernel, numbers | chosen) > numbers["M"]:
            if max(chosen.values()) == 1:
                event("nothing fits")
                return
            chosen = {t: (x + 1) // 2 for t, x in chosen.items()}
        event(f"{question[0]} fits")
        assert all(value(small, numbers) <= value(big, numbers) for small, big in found.needs)
        grows = lead.monomial.xreplace({s: sp.Integer(numbers[s.name]) for s in lead.monomial.free_symbols})
        assert float(moved(schedule, lead.kernel, numbers | chosen)) >= float(grows) / 4


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("kept", sorted(KEPT))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_dual_certificate_multiplies_out(schedule: str, kept: str, mask: str) -> None:
    """The weighted mean of a kernel's terms and limits is the monomial times powers of tiles that are not negative."""
    names = {str(symbol(name)): symbol(name) for name in MEANINGS} | {"N": N}
    found = class_of(schedule, kept, mask)
    for lead in found.leads:
        mean, weight = sp.Integer(1), Fraction(0)
        for text, w in lead.weights.items():
            assert w > 0
            sides = [sp.sympify(side, locals=names) for side in text.split(" <= ")]
            weight += w if len(sides) == 1 else 0
            mean *= (sides[0] / (sides[1] if len(sides) == 2 else 1)) ** sp.Rational(w)
        assert weight == 1
        rest = exponents_of(sp.powsimp(mean / lead.monomial))
        assert set(rest) <= set(tiles_of(lead.kernel))
        assert all(e > 0 for e in rest.values())


@pytest.mark.parametrize("kept", sorted(KEPT))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_causal_mask_with_tied_lengths_keeps_the_class(schedule: str, kept: str) -> None:
    """Half of the pairs are half of the count at most."""
    full, causal = class_of(schedule, kept), class_of(schedule, kept, "causal")
    assert set(causal.monomials) == set(full.monomials)
    assert set(causal.region.rays) == set(full.region.rays)
    for one, other in zip(full.leads, causal.leads, strict=True):
        assert set(one.region.rays) == set(other.region.rays)


@pytest.mark.parametrize("kept", sorted(KEPT))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_leads_share_out_the_region(schedule: str, kept: str) -> None:
    """Each is the largest somewhere, none is dropped as well, and what is dropped has its argument."""
    found = class_of(schedule, kept)
    forms = [found.parameters.form(exponents_of(m)) for m in found.monomials]
    for lead, form in zip(found.leads, forms, strict=True):
        assert lead.region.has_interior
        assert all(inner(form, r) >= inner(other, r) for r in lead.region.rays for other in forms)
    assert not set(found.monomials) & {x.monomial for x in found.dropped}


def test_a_regime_cuts_what_leads() -> None:
    """The paper's regime leaves one monomial; with a larger memory it is the other."""
    found = growth(schedule_of("flash2"), TIED, where=[(d, M), (M, N * d)])
    assert found.monomials == (N**2 * d**2 / M,)
    found = growth(schedule_of("flash2"), TIED, where=[(d, M), (M**2, N * d)])
    assert found.monomials == (N**2 * d**2 / M,)
    found = growth(schedule_of("flash2"), TIED, where=[(N * d, M)])
    assert found.monomials == (N * d,)


@pytest.mark.parametrize(("schedule", "lead"), [("flash1", N**2 * d**2 / M), ("square", N**2 * d / sp.sqrt(M))])
def test_a_regime_may_rule_out_tiles_as_large_as_their_extents(schedule: str, lead: sp.Expr) -> None:
    """The paper's own regime for FlashAttention, M <= N d, leaves no room for all rows at once; that refuses nothing."""
    assert growth(schedule_of(schedule), TIED, where=[(d, M), (M, N * d)]).monomials[-1] == lead
    assert growth(schedule_of(schedule), TIED, where=[(d, M), (M**2, N * d)]).monomials[-1] == lead


def test_a_regime_that_contradicts_itself_is_refused() -> None:
    """With the condition at which it breaks."""
    with pytest.raises(
        DomainError, match=r"the regime d <= M and M <= d contradicts itself at M <= d: no sizes above 1"
    ):
        growth(schedule_of("flash2"), TIED, where=[(d, M), (M, d)])


def test_a_regime_without_room_is_refused() -> None:
    """With what the tiles need."""
    with pytest.raises(DomainError, match="no tiles fit: they need d <= M, which the regime rules out"):
        growth(schedule_of("flash2"), TIED, where=[(M, d)])


def test_an_undecided_maximum_asks_for_a_regime() -> None:
    """More queries than keys under a bottom-right causal mask: some see no key."""
    with pytest.raises(
        DomainError, match=r"max\(0, -N_k \+ N_q\) is undecided: give a regime that says which is larger"
    ):
        growth(schedule_of("flash2", mask="causal"))
    assert growth(schedule_of("flash2", mask="causal"), where=[(N_q, N_k)]).leads


def test_a_condition_on_what_the_count_does_not_depend_on_is_refused() -> None:
    """It is more likely a slip than a wish."""
    with pytest.raises(DomainError, match=r"W <= N speaks of W, which the count does not depend on"):
        growth(schedule_of("flash2"), TIED, where=[(sp.Symbol("W", positive=True), N)])


def test_a_condition_with_a_number_in_front_of_what_is_larger_is_refused() -> None:
    """A class knows no constants; in front of what is small a number makes the regime stricter, and the class stays."""
    with pytest.raises(DomainError, match=r"4\*M has the number 4 in front; classes and regimes leave constants out"):
        growth(schedule_of("flash2"), TIED, where=[(d, 4 * M)])
    with pytest.raises(DomainError, match=r"d/4 has the number 1/4 in front"):
        growth(schedule_of("flash2"), TIED, where=[(d / 4, M)])
    assert growth(schedule_of("flash2"), TIED, where=[(4 * d, M)]).total == growth(schedule_of("flash2"), TIED).total


def test_a_condition_that_is_no_monomial_is_refused() -> None:
    """A sum has no exponents."""
    with pytest.raises(DomainError, match=r"N \+ d is no monomial"):
        growth(schedule_of("flash2"), TIED, where=[(N + d, M)])

"""Counts held between sums of monomials: the bounds against the exact count, for every schedule, mask and variant."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.coverage import coverage
from derive.errors import DomainError
from derive.exact import value
from derive.growth.posynomial import Facts, Term, _never_negative, above, below, smooth
from derive.growth.tile_bounds import TileBounds
from derive.schedule import Kernel, Schedule
from derive.symbols import N_k, N_q
from derive.traffic import kernel_traffic, traffic_under
from tests import strategies

x, y, z = sp.symbols("x y z", positive=True, integer=True)
s = sp.Symbol("s", positive=True)


def total(terms: Sequence[Term], numbers: dict[str, int]) -> Fraction:
    """The sum of *terms*."""
    found = Fraction(0)
    for term in terms:
        product = Fraction(int(term.coefficient.p), int(term.coefficient.q))
        for symbol, exponent in term.exponents.items():
            product *= Fraction(numbers[symbol.name]) ** exponent  # type: ignore[assignment]
        found += product
    return found


def facts(*conditions: tuple[sp.Expr, sp.Expr]) -> Facts:
    """What is known of x, y, z."""
    return Facts.of((x, y, z, s), conditions, frozenset())


def amount(schedule: Schedule, kernel: Kernel, *, up: bool) -> sp.Expr:
    """What a kernel moves, its sums over tiles bounded."""
    met = coverage(schedule.graph.mask, kernel.loops) if kernel.skips_masked else None
    return traffic_under(schedule, kernel, None if met is None else TileBounds(met, up)).total.amount  # type: ignore[arg-type]


@settings(max_examples=300)
@given(variant=strategies.variants, schedule=strategies.schedules, mask=strategies.masks, numbers=strategies.shapes())
def test_bounds_enclose_the_exact_count_of_every_schedule(
    variant: str, schedule: str, mask: str, numbers: dict[str, int]
) -> None:
    """At random sizes, tiles no larger than their extents; from below where no loop is a single trip, a regime of its own."""
    derived = strategies.derivation(variant, schedule, mask).schedule
    longer = (N_q, N_k) if numbers["N_q"] <= numbers["N_k"] else (N_k, N_q)
    for kernel in derived.kernels:
        tiled = [loop for loop in kernel.loops if loop.tile.is_Symbol]
        sizes = {n: value(loop.extent, numbers) for loop in tiled for n in [loop.tile.name]}
        clamped = numbers | {n: min(numbers[n], int(size)) for n, size in sizes.items()}
        several = all(clamped[n] < size for n, size in sizes.items())
        exact = value(kernel_traffic(derived, kernel).total.amount, clamped)
        for up in (True, False):
            bound = amount(derived, kernel, up=up)
            known = Facts.of((bound,), [*((loop.tile, loop.extent) for loop in tiled), longer], frozenset())
            try:
                terms = (above if up else below)(bound, known)
            except DomainError:
                event("refused")
                continue
            assert all(term.coefficient > 0 for term in terms)
            if up:
                assert exact <= total(terms, clamped)
            elif several:
                event("bounded from below")
                assert total(terms, clamped) <= exact


whole_expressions = st.recursive(
    st.sampled_from([x, y, z, sp.Integer(1), sp.Integer(3)]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.sampled_from([x, y, z])).map(lambda p: sp.ceiling(p[0] / p[1])),
        st.tuples(inner, st.sampled_from([x, y, z])).map(lambda p: sp.floor(p[0] / p[1])),
        st.tuples(inner, inner).map(lambda p: sp.Max(p[0], p[1])),
    ),
    max_leaves=5,
)


@settings(max_examples=300)
@given(whole_expressions, st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_bounds_enclose_random_expressions(expression: sp.Expr, at: list[int]) -> None:
    """Ceilings, floors and maxima in each other, at random whole numbers."""
    numbers = dict(zip("xyz", at, strict=True))
    exact = value(expression, numbers)
    for up, bound in ((True, above), (False, below)):
        try:
            found = total(bound(expression, facts()), numbers)
        except DomainError:
            event("refused")
            continue
        event("above" if up else "below")
        assert (exact <= found) if up else (found <= exact)


def monomials(terms: Sequence[Term]) -> sp.Expr:
    """Their sum, written out."""
    return sp.Add(*(t.coefficient * sp.Mul(*(b ** sp.Rational(e) for b, e in t.exponents.items())) for t in terms))


def test_a_ceiling_is_at_most_one_more() -> None:
    """And at least what is inside; a floor the other way round."""
    assert monomials(above(y * sp.ceiling(x / z), facts())) == y * x / z + y
    assert monomials(below(y * sp.ceiling(x / z), facts())) == y * x / z
    assert monomials(above(sp.floor(x / z), facts())) == x / z
    assert monomials(below(2 * x + sp.floor(x / z), facts())) == x + x / z
    assert monomials(smooth(y * sp.ceiling(x / z) - y, facts())) == y * x / z - y


def test_what_is_taken_off_is_set_against_what_is_never_smaller() -> None:
    """From below; it depends on the facts whether that can be done. From above it is left out."""
    assert monomials(below(2 * x * y - y, facts())) == x * y
    assert monomials(below(x - z, facts((z, x)))) == 0
    assert monomials(above(x - z, facts())) == x
    with pytest.raises(
        DomainError, match="no sum of monomials under the stated regime: a negative term is not outweighed"
    ):
        below(x - z, facts())


def test_fractions_are_at_most_one() -> None:
    """So that a share of something is never above it."""
    assert monomials(below(2 * x - s * x, facts())) == x
    with pytest.raises(DomainError, match="a negative term is not outweighed"):
        below(2 * x * s - x, facts())


def test_what_has_no_negative_factor_is_not_negative() -> None:
    """X y - y^2/2 + y/2 - x is (y - 1) (x - y/2), and no term of it outweighs x."""
    several = x * y - y**2 / 2 + y / 2
    assert monomials(above(sp.Min(x, several), facts((y, x)))) == x
    with pytest.raises(DomainError, match="is undecided"):
        above(sp.Min(x, several), facts())


def test_an_extreme_is_decided_by_the_facts() -> None:
    """Where one member is the extreme throughout; a maximum lies between the mean and the sum of its members."""
    assert monomials(below(sp.Max(x, y), facts((x, y)))) == y
    assert monomials(above(sp.Min(x, y), facts((x, y)))) == x
    assert monomials(above(sp.Max(x, y), facts())) == x + y
    assert monomials(below(sp.Max(x, y), facts())) == x / 2 + y / 2
    with pytest.raises(DomainError, match=r"max\(0, x - y\) is undecided: give a regime that says which is larger"):
        below(sp.Max(0, x - y), facts())
    with pytest.raises(DomainError, match=r"min\(x, y\) is undecided: give a regime that says which is larger"):
        above(sp.Min(x, y), facts())


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (sp.log(x), r"log\(x\) is no sum of monomials: log has no exponents"),
        (1 / (x + y), r"no sum of monomials: Pow has no exponents"),
        (x**y, r"no sum of monomials: Pow has no exponents"),
    ],
)
def test_what_has_no_monomials_is_refused(expression: sp.Expr, says: str) -> None:
    """With the part that has none."""
    for bound in (above, below):
        with pytest.raises(DomainError, match=says):
            bound(expression, facts())


def test_a_rounded_quotient_beside_its_numerator_is_taken_apart() -> None:
    """The pairs of whole chunks, f z^2/2 + (x - f z)^2/2: from above and from below x z, where z <= x."""
    f = sp.floor(x / z)
    amount = f * z**2 + (x - f * z) ** 2
    whole = {"x": 17, "z": 5}
    for numbers in (whole, {"x": 15, "z": 5}, {"x": 5, "z": 5}):
        low, up = (total(bound(sp.expand(amount), facts((z, x))), numbers) for bound in (below, above))
        assert 0 < low <= value(amount, numbers) <= up
    assert monomials(below(sp.expand(amount), facts((z, x)))) == x * z / 2
    assert monomials(above(sp.expand(amount), facts((z, x)))) == x * z + z**2


def test_a_stricter_condition_pays_for_more() -> None:
    """Where 4 y <= x and 4 z <= x, both together take half of x; where they are only smaller, that much is not known."""
    assert monomials(below(x - y - z, facts((4 * y, x), (4 * z, x)))) == x / 2
    assert monomials(below(x**2 - y * z, facts((4 * y, x), (4 * z, x)))) == 3 * x**2 / 4
    for amount, known in ((x - y - z, facts((y, x), (z, x))), (x / 8 - y, facts((4 * y, x)))):
        with pytest.raises(DomainError, match="a negative term is not outweighed"):
            below(amount, known)


def test_an_extreme_is_settled_before_terms_are_set_against_each_other() -> None:
    """Twice the same once the minima are settled: min(x, z) - z is 0 where z <= x."""
    kept = sp.Min(x, z, evaluate=False) - z + y
    assert monomials(below(kept, facts((z, x)))) == monomials(above(kept, facts((z, x)))) == y


def test_a_product_that_is_never_negative_is_so_with_a_positive_number_in_front_alone() -> None:
    """(x - 1)(y - 1) for x and y from 1 up, a half of it, and not minus a half of it."""
    known, product = facts(), (x - 1) * (y - 1)
    assert _never_negative(product, known)
    assert _never_negative(product / 2, known)
    assert not _never_negative(-product / 2, known)


def test_what_is_larger_at_most_is_not_larger_throughout() -> None:
    """Of y floor(x/y) and x - 1 either may be larger: 1 and 0 at x = y = 1, and 3 and 4 at x = 5, y = 3."""
    rounded, known = y * sp.floor(x / y), facts((x, y))
    assert not _never_negative(rounded - (x - 1), known)
    assert _never_negative(y * sp.ceiling(x / y) - (x - 1), known)
    with pytest.raises(DomainError, match="is undecided"):
        below(sp.Max(rounded, x - 1), known)

"""Lower bounds: derived exponents, and that no schedule that fits ever moves less."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.buffers import working_set
from derive.exact import value
from derive.growth import growth
from derive.growth.cited import cited_bounds
from derive.growth.cone import Cone
from derive.growth.lower import Bound, compulsory_bounds, contraction_bounds
from derive.growth.parameters import Parameters
from derive.growth.posynomial import Facts
from derive.rewrite import Derivation
from derive.schedule import Schedule
from derive.symbols import M, N, N_k, N_q, d
from derive.traffic import traffic
from rules.derivations import plan
from tests.derive.growth.known import TIED


@cache
def derivation(schedule: str, name: str = "mha") -> Derivation:
    """One head, d = d_v."""
    return plan(schedule).derive(variant(name).graph("full", ()))


@cache
def bounds_of(name: str, *, fused: bool) -> tuple[Parameters, list[Bound]]:
    """Every derived bound on mha with one length."""
    return bounds(derivation(name).schedule, TIED, fused=fused)


def bounds(
    schedule: Schedule, alike: dict[sp.Symbol, sp.Expr], *, fused: bool = True
) -> tuple[Parameters, list[Bound]]:
    """Every derived bound."""
    parameters = growth(schedule, alike).parameters
    region = Cone.orthant(len(parameters.symbols))
    facts = Facts.of(parameters.symbols, (), frozenset())
    found = compulsory_bounds(schedule, parameters, region, alike, facts)
    return parameters, [*found, *contraction_bounds(schedule, parameters, region, alike, facts, fused=fused)]


def test_a_product_needs_its_points_over_the_root_of_m() -> None:
    """Irony, Toledo & Tiskin 2004, theorem 2.1: N_q N_k d/(2 sqrt(2) sqrt(M)) - M; all three exponents are 1/2."""
    _, found = bounds(derivation("square", "matmul").schedule, {})
    (root,) = [b for b in found if b.monomial == N_q * N_k * d / sp.sqrt(M)]
    assert sp.simplify(root.constant - 1 / (2 * sp.sqrt(2))) == 0  # type: ignore[operator]
    assert root.less == M
    assert root.weights == {"Q": Fraction(1, 2), "K": Fraction(1, 2), "S": Fraction(1, 2)}


def test_compulsory_traffic_is_a_bound_with_its_exact_constant() -> None:
    """Q, K, V and O of one head: 4 N d."""
    _, found = bounds(derivation("flash2").schedule, TIED)
    assert (found[0].monomial, found[0].constant, found[0].status) == (N * d, 4, "derived")


def test_scores_that_stay_on_chip_bound_nothing() -> None:
    """Any program evaluates each q k product with both operands at hand: N^2 d/(4 M); stored scores make it N^2 d/sqrt(M)."""
    _, fused = bounds(derivation("square").schedule, TIED)
    _, apart = bounds(derivation("square").schedule, TIED, fused=False)
    assert (N**2 * d / M, sp.Rational(1, 4)) in [(x.monomial, x.constant) for x in fused]
    assert N**2 * d / sp.sqrt(M) not in [x.monomial for x in fused]
    assert N**2 * d / sp.sqrt(M) in [x.monomial for x in apart]


@pytest.mark.parametrize("name", ["flash1", "flash2", "square"])
@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(1, 300),
    head=st.integers(1, 40),
    rows=st.integers(1, 80),
    keys=st.integers(1, 80),
    depth=st.integers(1, 40),
)
def test_no_schedule_moves_less_than_a_derived_bound(
    name: str, length: int, head: int, rows: int, keys: int, depth: int
) -> None:
    """Exact elements at random tiles, M being what those tiles need: never below any bound, its constant included."""
    schedule = derivation(name).schedule
    numbers = {"N_q": length, "N_k": length, "N": length, "d": head}
    numbers |= {"B_r": min(rows, length), "B_c": min(keys, length), "B_d": min(depth, head)}
    if name == "square":  # one set of tiles for products over k and over d
        numbers["B_c"] = numbers["B_d"] = min(keys, depth, length, head)
    fast = max(value(working_set(schedule, k).amount, numbers) for k in schedule.kernels if k.loops)
    numbers["M"] = fast
    moved = value(traffic(schedule).total.amount, numbers)
    for fused in (True, False):
        parameters, found = bounds_of(name, fused=fused)
        for bound in found:
            region = (parameters.condition(f) for f in bound.region.facets)
            at = {s: numbers[s.name] for s in parameters.symbols}
            inside = all(small.subs(at) <= big.subs(at) for small, big in region)
            least = (bound.constant * bound.monomial - bound.less).subs(at)  # type: ignore[operator]
            assert not inside or moved >= least, bound.how


def test_cited_bounds_say_that_they_are() -> None:
    """Saha & Ye 2024, arXiv:2402.07443, theorem 3.1; no constant is known."""
    found = derivation("flash2")
    parameters = growth(found.schedule, TIED).parameters
    cited = list(cited_bounds(found.start, parameters, Cone.orthant(len(parameters.symbols)), TIED))
    assert {c.status for c in cited} == {"cited"}
    assert {c.constant for c in cited} == {None}
    by_class = {c.monomial: [parameters.condition(f) for f in c.region.facets] for c in cited if "3.1" in c.source}
    assert by_class == {N**2 * d / sp.sqrt(M): [(M, d**2)], N**2 * d**2 / M: [(d**2, M)]}

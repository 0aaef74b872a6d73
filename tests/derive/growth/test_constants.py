"""Leading constants against the exact count at the best tiles found by trying them, at sizes deep inside a regime."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import pytest
import sympy as sp

from derive.exact import value
from derive.growth import Growth, growth
from derive.growth.constants import best_constant, constant_at
from derive.growth.parameters import Parameters
from derive.growth.posynomial import Term
from derive.notation import cascade
from derive.rewrite import apply_once
from derive.schedule import Kernel, Schedule, lift
from derive.symbols import B_c, B_r, M, W, b, d, d_v
from rules.derivations import plan
from rules.schedule import tile_product
from tests.derive.growth.known import TIED, N, class_of, extent, held, moved, schedule_of, tiles_of

SMALL = {"N": 2**40, "d": 2**20, "M": 2**32}
"""d^2 above M: where square tiles lead."""
BETWEEN = {"N": 2**40, "d": 2**12, "M": 2**32}
"""d^2 << M << N d."""
AMPLE = {"N": 2**20, "d": 2**8, "M": 2**60}
"""N^2 << M."""


def least(schedule: Schedule, kernel: Kernel, numbers: Mapping[str, int]) -> Fraction:
    """What a kernel moves at the best tiles: all but one a power of four, that one as large as fits, in every order."""
    tiles = tiles_of(kernel)
    if not tiles:
        return moved(schedule, kernel, numbers)
    sizes = {t.name: extent(kernel, t, numbers) for t in tiles}
    counts = []
    for free in sizes:
        for chosen in _choices([t for t in sizes if t != free], sizes):
            low, high = 0, sizes[free]
            while low < high:
                middle = (low + high + 1) // 2
                fits = held(schedule, kernel, {**numbers, **chosen, free: middle}) <= numbers["M"]
                low, high = (middle, high) if fits else (low, middle - 1)
            if low:
                counts.append(moved(schedule, kernel, {**numbers, **chosen, free: low}))
    return min(counts)


def _choices(tiles: list[str], sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Powers of four up to each extent, and the extents."""
    found: list[dict[str, int]] = [{}]
    for tile in tiles:
        powers = {4**n for n in range(sizes[tile].bit_length() // 2 + 1)} | {sizes[tile]}
        found = [{**each, tile: power} for each in found for power in sorted(powers) if power <= sizes[tile]]
    return found


def ratio(schedule: Schedule, monomial: sp.Expr, numbers: Mapping[str, int]) -> float:
    """The count at the best tiles, in units of *monomial*."""
    total = sum(least(schedule, kernel, numbers) for kernel in schedule.kernels)
    return float(
        sp.Rational(total) / monomial.xreplace({s: sp.Integer(numbers[s.name]) for s in monomial.free_symbols})
    )


def constant(found: Growth, monomial: sp.Expr) -> sp.Expr | None:
    """The number in front of *monomial*."""
    (lead,) = (lead for lead in found.leads if lead.monomial == monomial)
    return lead.constant


@pytest.mark.parametrize(
    ("schedule", "monomial", "numbers", "expected"),
    [
        ("naive", N**2, BETWEEN, 4),
        ("naive", N * d, {"N": 2**8, "d": 2**40, "M": 2**20}, 4),
        ("op-by-op", N**2, BETWEEN, 10),
        ("flash2", N**2 * d**2 / M, BETWEEN, 4),
        ("flash2", N * d, AMPLE, 4),
        ("flash1", N**2 * d**2 / M, BETWEEN, 6),
        ("flash1", N * d, AMPLE, 4),
        ("flash1", N * d, {"N": 2**30, "d": 2**12, "M": 2**50}, 4),
        ("row-resident", N**3 * d / M, {"N": 2**30, "d": 2**4, "M": 2**46}, 2),
        ("row-resident", N * d, AMPLE, 4),
    ],
)
def test_the_constant_is_what_the_best_tiles_reach(
    schedule: str, monomial: sp.Expr, numbers: dict[str, int], expected: int
) -> None:
    """FlashAttention-2 moves 4 N^2 d^2/M, the order of FlashAttention at its best 6, unfused attention 4 N^2."""
    assert constant(class_of(schedule), monomial) == expected
    assert ratio(schedule_of(schedule), monomial, numbers) == pytest.approx(expected, rel=0.01)


def test_the_constant_of_square_tiles() -> None:
    """Two products of 2 N^2 d/sqrt(M) each, at tiles that hold sqrt(M) by sqrt(M) of the result."""
    monomial = N**2 * d / sp.sqrt(M)
    assert constant(class_of("square"), monomial) == 4
    numbers = {"N": 2**22, "d": 2**22, "M": 2**16}
    assert ratio(schedule_of("square"), monomial, numbers) == pytest.approx(4, rel=0.02)


@pytest.mark.parametrize("schedule", ["flash1", "flash2"])
def test_half_of_it_is_left_under_a_causal_mask(schedule: str) -> None:
    """Half of the pairs, half of the tiles once tiles are small; where one tile is the whole sequence nothing is said."""
    monomial = N**2 * d**2 / M
    full, causal = constant(class_of(schedule), monomial), constant(class_of(schedule, mask="causal"), monomial)
    assert causal == full / 2
    assert ratio(schedule_of(schedule, mask="causal"), monomial, BETWEEN) == pytest.approx(float(causal), rel=0.01)
    assert constant(class_of(schedule, mask="causal"), N * d) is None


@pytest.mark.parametrize("wide", [d, d_v])
@pytest.mark.parametrize("schedule", ["flash1", "flash2"])
def test_the_constant_with_two_head_dimensions(schedule: str, wide: sp.Symbol) -> None:
    """Where one of them leads, the other's tiles take no room."""
    numbers = BETWEEN | {"d": 2**2, "d_v": 2**2, wide.name: 2**12}
    found = constant(class_of(schedule, "apart"), N**2 * wide**2 / M)
    assert found == {"flash1": {d: 1, d_v: 2}, "flash2": {d: 1, d_v: 1}}[schedule][wide]
    assert ratio(schedule_of(schedule, "apart"), N**2 * wide**2 / M, numbers) == pytest.approx(float(found), rel=0.01)


def published() -> Growth:
    """The class with the constants at the tiles of FlashAttention's algorithm 1."""
    return growth(schedule_of("flash1"), TIED, tiles=plan("flash1").tiles)


def test_the_constant_at_published_tiles() -> None:
    """B_c = M/4d, B_r = min(M/4d, d): 12 N^2 d^2/M. Dao et al. 2022, arXiv:2205.14135, algorithm 1."""
    monomial = N**2 * d**2 / M
    (lead,) = (lead for lead in published().leads if lead.monomial == monomial)
    assert (lead.constant, lead.published) == (6, 12)
    schedule = schedule_of("flash1")
    (kernel,) = schedule.kernels
    numbers = dict(BETWEEN)
    numbers |= {t.name: int(value(e, numbers)) for t, e in plan("flash1").tiles.items() if t in tiles_of(kernel)}
    assert numbers["B_c"] == numbers["M"] // (4 * numbers["d"])
    grows = Fraction(numbers["N"] ** 2 * numbers["d"] ** 2, numbers["M"])
    assert float(moved(schedule, kernel, numbers) / grows) == pytest.approx(12, rel=0.01)


def test_the_published_constant_is_silent_beyond_the_paper_s_regime() -> None:
    """Where its tile exceeds the sequence, M > N d, nothing is claimed."""
    (lead,) = (lead for lead in published().leads if lead.monomial == N * d)
    assert lead.published is None


def test_the_published_constant_is_silent_where_the_tiles_are_not_known_to_be_small_beside_a_window() -> None:
    """The bounds from above and below differ there: 12 N W d^2/M would be a guess."""
    where = ((d, W), (W, N))
    found = growth(schedule_of("flash1", mask="window"), TIED, where, tiles=plan("flash1").tiles)
    assert {lead.monomial: lead.published for lead in found.leads} == {N * d: None, N * W * d**2 / M: None}


@cache
def product() -> Schedule:
    """C = A B alone, N by N, in square tiles."""
    text = "C[i,j] = sum[k] A[i,k] * B[k,j]"
    graph = cascade(text, dict.fromkeys("ijk", N), outputs=("C",), width=b)
    return apply_once(tile_product.RULE, lift(graph)).after


def test_a_lone_matrix_product() -> None:
    """Theta(N^3/sqrt(M) + N^2) with 2 and 3 in front: Hong & Kung 1981; 2 by Smith et al. 2019, arXiv:1702.02017."""
    found = growth(product())
    assert found.monomials == (N**2, N**3 / sp.sqrt(M))
    assert [lead.constant for lead in found.leads] == [3, 2]
    numbers = {"N": 2**22, "M": 2**16}
    assert ratio(product(), N**3 / sp.sqrt(M), numbers) == pytest.approx(2, rel=0.02)
    assert ratio(product(), N**2, {"N": 2**10, "M": 2**30}) == pytest.approx(3, rel=0.01)


def test_a_geometric_program_of_one_dual_point() -> None:
    """N/a + N/b under a b <= M is at least 2 N/sqrt(M); with more full terms than equations no closed form is claimed."""
    parameters, one = Parameters((M, N)), Fraction(1)
    traffic = [Term(sp.Integer(1), {N: one, B_r: -one}), Term(sp.Integer(1), {N: one, B_c: -one})]
    extents = {B_r: {N: one}, B_c: {N: one}}

    def best(footprint: list[Term], lead: tuple[Fraction, Fraction], size: Fraction) -> sp.Expr | None:
        sizes = {B_r: size, B_c: size}
        return best_constant(parameters, lead, (4, 9), sizes, extents, traffic, footprint)

    together = [Term(sp.Integer(1), {B_r: one, B_c: one})]
    assert best(together, (-one / 2, one), Fraction(2)) == 2
    apart = [Term(sp.Integer(8), {B_r: one}), Term(sp.Integer(8), {B_c: one})]
    assert best(apart, (-one, one), Fraction(4)) is None
    assert best([*together, Term(sp.Integer(1), {B_r: 2 * one})], (-one / 2, one), Fraction(2)) is None
    traffic[0] = Term(-sp.Rational(1, 2), {N: one, B_r: -one})  # no posynomial: the dual says nothing
    assert best(together, (-one / 2, one), Fraction(2)) is None


def test_a_weighted_geometric_program() -> None:
    """2 N/a + 3 N/b under 5 a b <= M: 2 sqrt(2 3 5), by setting the terms equal."""
    parameters, one = Parameters((M, N)), Fraction(1)
    traffic = [Term(sp.Integer(2), {N: one, B_r: -one}), Term(sp.Integer(3), {N: one, B_c: -one})]
    extents = {B_r: {N: one}, B_c: {N: one}}
    full = [Term(sp.Integer(5), {B_r: one, B_c: one})]
    sizes = {B_r: Fraction(2), B_c: Fraction(2)}
    found = best_constant(parameters, (-one / 2, one), (4, 9), sizes, extents, traffic, full)
    assert float(found) == pytest.approx(2 * 30**0.5)


def test_a_tile_that_fills_the_memory_for_nothing_has_no_constant() -> None:
    """3 N whatever the tile, with a tile as large as M: its term has no weight, and no number is claimed."""
    parameters, one = Parameters((M, N)), Fraction(1)
    traffic, full = [Term(sp.Integer(3), {N: one})], [Term(sp.Integer(1), {B_r: one})]
    found = best_constant(parameters, (0 * one, one), (4, 9), {B_r: 4 * one}, {B_r: {N: one}}, traffic, full)
    assert found is None


def test_the_constant_at_given_tiles_adds_what_is_as_large() -> None:
    """Terms of the lead's own exponents alone; ``None`` where there are none, or where tiles are sums."""
    one = Fraction(1)
    traffic = [Term(sp.Integer(3), {N: 2 * one, B_r: -one}), Term(sp.Integer(7), {N: one})]
    lead = {N: 2 * one, d: one, M: -one}
    assert constant_at(lead, {B_r: M / (4 * d)}, traffic) == 12
    assert constant_at(lead, {B_r: M / d**2}, traffic) is None
    assert constant_at(lead, {B_r: M / (4 * d + 1)}, traffic) is None

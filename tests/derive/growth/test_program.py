"""The cutting planes against every vertex of the dual: the class, both certificates, and where any tiles fit."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import pytest
import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.errors import DomainError
from derive.growth.cone import Cone
from derive.growth.linear import Infeasible, Optimum
from derive.growth.parameters import Parameters
from derive.growth.program import Envelope, Program, envelope, feasible, leading, region_of
from tests.derive.growth.vertices import basic_solutions, inner

N, d, M = sp.symbols("N d M", positive=True, integer=True)
POINTS = 12
"""Random points at which an answer is tried."""


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """One to three tiles in two or three parameters; each tile has an extent, as in every schedule."""
    parameters = Parameters((N, d, M)[: draw(st.integers(2, 3))])
    size, tiles = len(parameters.symbols), sp.symbols("t:3", positive=True)[: draw(st.integers(1, 3))]

    def monomial(least: int, most: int) -> dict[sp.Symbol, Fraction]:
        exponents = st.integers(-2, 2)
        drawn = {s: Fraction(draw(exponents)) for s in parameters.symbols}
        return drawn | {t: Fraction(draw(st.integers(least, most))) for t in tiles}

    extents = [{s: Fraction(draw(st.integers(0, 2))) for s in parameters.symbols} for _ in tiles]
    empty = Program(parameters, tiles, (), (), ())
    limits = [monomial(0, 2) for _ in range(draw(st.integers(0, 2)))]
    limits += [{t: Fraction(1), **{s: -x for s, x in e.items()}} for t, e in zip(tiles, extents, strict=True)]
    traffic = [monomial(-2, 1) for _ in range(draw(st.integers(1, 4)))]
    assert size == len(parameters.symbols)
    return Program(
        parameters,
        tiles,
        tuple(parameters.form(e) for e in extents),
        tuple(empty.row(f"term {n}", t) for n, t in enumerate(traffic)),
        tuple(empty.row(f"limit {n}", t) for n, t in enumerate(limits)),
    )


def dual_vertices(program: Program) -> set[tuple[Fraction, ...]]:
    """The form at every vertex of the dual: weights of the terms sum to 1, and no tile is left with a negative power."""
    rows = (*program.traffic, *program.limits)
    sums = [[1] * len(program.traffic) + [0] * (len(rows) + len(program.tiles) - len(program.traffic))]
    for n in range(len(program.tiles)):
        sums.append([*(row.tiles[n] for row in rows), *(-int(i == n) for i in range(len(program.tiles)))])
    return {_mean(program, w) for w in basic_solutions(sums, [1] + [0] * len(program.tiles))}


def proofs_of_no_tiles(program: Program) -> set[tuple[Fraction, ...]]:
    """The form at every extreme ray of weights of limits alone: tiles fit just where none is positive."""
    sums = [[1] * len(program.limits) + [0] * len(program.tiles)]
    for n in range(len(program.tiles)):
        sums.append([*(row.tiles[n] for row in program.limits), *(-int(i == n) for i in range(len(program.tiles)))])
    found = basic_solutions(sums, [1] + [0] * len(program.tiles))
    return {
        tuple(
            inner([r.form[i] for r in program.limits], w[: len(program.limits)])
            for i in range(len(program.parameters.symbols))
        )
        for w in found
    }


def _mean(program: Program, weights: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    rows = (*program.traffic, *program.limits)
    return tuple(inner([r.form[i] for r in rows], weights[: len(rows)]) for i in range(len(program.parameters.symbols)))


def points(size: int, seed: int, count: int = POINTS) -> Iterator[tuple[Fraction, ...]]:
    """Random points of the orthant, some on its sides."""
    random = Random(seed)
    for _ in range(count):
        yield tuple(Fraction(random.randint(0, 30), random.randint(1, 7)) for _ in range(size))


def inside(cone: Cone, seed: int, count: int = POINTS) -> Iterator[tuple[Fraction, ...]]:
    """Random points of a cone."""
    random = Random(seed)
    for _ in range(count):
        weights = [Fraction(random.randint(0, 9), random.randint(1, 5)) for _ in cone.rays]
        yield tuple(inner([ray[i] for ray in cone.rays], weights) for i in range(cone.size))


def solved(program: Program) -> Envelope | None:
    """Its class over all parameters; ``None`` where no tiles fit anywhere."""
    try:
        return envelope(program, Cone.orthant(len(program.parameters.symbols)))
    except DomainError:
        return None


def holds(cone: Cone, at: tuple[Fraction, ...]) -> bool:
    """Whether *at* lies in *cone*."""
    return all(inner(n, at) >= 0 for n in cone.normals)


seeds = st.integers(0, 2**20)


@settings(max_examples=150)
@given(programs(), seeds)
def test_the_class_is_the_largest_vertex_of_the_dual(program: Program, seed: int) -> None:
    """At random points where tiles fit, the pieces' maximum is that over every vertex."""
    found = solved(program)
    if found is None:
        return
    every = dual_vertices(program)
    event(f"{len(found.pieces)} pieces")
    assert {piece.form for piece in found.pieces} <= every
    for at in (*inside(found.region, seed), *points(found.region.size, seed)):
        if holds(found.region, at):
            assert max(inner(p.form, at) for p in found.pieces) == max(inner(f, at) for f in every)


@settings(max_examples=150)
@given(programs())
def test_every_piece_is_needed(program: Program) -> None:
    """Each is strictly the largest inside its own cell."""
    found = solved(program)
    for piece in found.pieces if found else ():
        assert piece.cell.has_interior
        assert all(
            inner(piece.form, piece.cell.middle) > inner(other.form, piece.cell.middle)
            for other in found.pieces  # type: ignore[union-attr]
            if other is not piece
        )


@settings(max_examples=150)
@given(programs(), seeds)
def test_tiles_fit_in_the_region_and_nowhere_else(program: Program, seed: int) -> None:
    """Random points lie in it just where no weights of the limits rule all tiles out."""
    found = solved(program)
    proofs = proofs_of_no_tiles(program)
    for at in points(len(program.parameters.symbols), seed):
        fits = all(inner(form, at) <= 0 for form in proofs)
        if found is not None:
            event("fits" if fits else "does not fit")
            assert holds(found.region, at) == fits
        elif fits:  # on a boundary at most
            assert not all(inner(form, at) < 0 for form in proofs)


@settings(max_examples=150)
@given(programs())
def test_the_dual_certificate_proves_the_bound(program: Program) -> None:
    """The weighted mean of its terms and limits is the monomial times powers of tiles that are not negative.

    A limit is at most 1 and a tile at least 1, so the mean of the terms, and with it the largest, is at least the monomial.
    """
    found = solved(program)
    rows = {row.says: row for row in program.rows()}
    terms = {row.says for row in program.traffic}
    for piece in found.pieces if found else ():
        assert min(piece.weights.values()) > 0
        assert sum(w for name, w in piece.weights.items() if name in terms) == 1
        names, weights = list(piece.weights), list(piece.weights.values())
        assert all(inner([rows[n].tiles[i] for n in names], weights) >= 0 for i in range(len(program.tiles)))
        for i, coefficient in enumerate(piece.form):
            assert inner([rows[n].form[i] for n in names], weights) == coefficient


@settings(max_examples=150)
@given(programs(), seeds)
def test_the_primal_certificate_reaches_it(program: Program, seed: int) -> None:
    """At each ray of its region and at points between, tiles keep every limit and no term exceeds the monomial."""
    found = solved(program)
    for piece in found.pieces if found else ():
        for tiling in piece.tilings:
            assert tiling.region.has_interior
            for ray in (*tiling.region.rays, *inside(tiling.region, seed, 3)):
                assert holds(piece.cell, ray)  # type: ignore[arg-type]
                tiles = [inner(tiling.tiles[t], ray) for t in program.tiles]
                assert min(tiles) >= 0
                assert all(inner(row.form, ray) + inner(row.tiles, tiles) <= 0 for row in program.limits)
                largest = max(inner(row.form, ray) + inner(row.tiles, tiles) for row in program.traffic)
                assert largest == inner(piece.form, ray)


@settings(max_examples=150)
@given(programs(), seeds)
def test_tilings_cover_every_cell(program: Program, seed: int) -> None:
    """Each point of a cell lies where one of its tilings holds, and each point of the region lies in a cell."""
    found = solved(program)
    if found is None:
        return
    for at in inside(found.region, seed):
        assert any(holds(piece.cell, at) for piece in found.pieces)
    for piece in found.pieces:
        assert all(any(holds(t.region, at) for t in piece.tilings) for at in inside(piece.cell, seed, 5))


@settings(max_examples=150)
@given(programs())
def test_terms_that_never_lead_are_named(program: Program) -> None:
    """Whatever a term of the count becomes at the tiles found is a piece, or is passed by."""
    found = solved(program)
    if found is None:
        return
    leads, passed = {p.form for p in found.pieces}, {form for form, _ in found.passed}
    assert not leads & passed
    for tiling in (t for p in found.pieces for t in p.tilings):
        for row in program.traffic:
            at = [list(tiling.tiles[t]) for t in program.tiles]
            form = tuple(x + inner(row.tiles, [tile[i] for tile in at]) for i, x in enumerate(row.form))
            assert form in leads | passed


@settings(max_examples=150)
@given(programs())
def test_tiles_between_the_extremes_are_best_too(program: Program) -> None:
    """``inside`` gives tiles that keep every limit and reach the optimum."""
    found = solved(program)
    if found is None:
        return
    at = found.region.middle
    sizes = program.inside(at)
    tiles = [sizes[t] for t in program.tiles]
    best = program.solved(at)
    assert isinstance(best, Optimum)
    assert min(tiles) >= 0
    assert all(inner(row.form, at) + inner(row.tiles, tiles) <= 0 for row in program.limits)
    assert max(inner(row.form, at) + inner(row.tiles, tiles) for row in program.traffic) == inner(best.value, at)


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.integers(-3, 3).map(Fraction), min_size=3, max_size=3).map(tuple), min_size=1, max_size=5),
    seeds,
)
def test_leading_forms_are_those_of_the_maximum(forms: list[tuple[Fraction, ...]], seed: int) -> None:
    """They have the same maximum, and without any of them it is smaller somewhere inside."""
    orthant = Cone.orthant(3)
    kept = leading(orthant, forms)
    assert set(kept) <= set(forms)
    for at in points(3, seed):
        assert max(inner(f, at) for f in kept) == max(inner(f, at) for f in forms)
    for form in kept:
        cell = orthant.cut_all([x - y for x, y in zip(form, other, strict=True)] for other in kept if other != form)
        assert cell.has_interior


def test_matrix_product_comes_out() -> None:
    """Three tiles of a product of N by N matrices: N^3/sqrt(M) while M <= N^2, then N^2. Hong & Kung 1981."""
    a, b, c = tiles = sp.symbols("a b c", positive=True)
    parameters = Parameters((M, N))
    empty = Program(parameters, tiles, (), (), ())

    def row(text: str, **powers: int) -> object:
        names = {"a": a, "b": b, "c": c, "N": N, "M": M}
        return empty.row(text, {names[k]: Fraction(v) for k, v in powers.items()})

    traffic = (row("left", N=3, b=-1), row("right", N=3, a=-1), row("result", N=2))
    limits = (row("ab", a=1, b=1, M=-1), row("ac", a=1, c=1, M=-1), row("bc", b=1, c=1, M=-1))
    whole = tuple(row(f"{t} <= N", **{str(t): 1, "N": -1}) for t in tiles)
    extents = (parameters.form({N: Fraction(1)}),) * 3
    program = Program(parameters, tiles, extents, traffic, (*limits, *whole))  # type: ignore[arg-type]
    found = envelope(program, Cone.orthant(2))
    assert {parameters.monomial(p.form) for p in found.pieces} == {N**3 / sp.sqrt(M), N**2}
    (root,) = (p for p in found.pieces if parameters.monomial(p.form) != N**2)
    half = Fraction(1, 2)
    assert root.weights == {"left": half, "right": half, "ab": half}
    assert [parameters.monomial(t) for t in root.tilings[0].tiles.values()] == [sp.sqrt(M), sp.sqrt(M), 1]


def test_a_region_without_tiles_is_refused() -> None:
    """The error names what the tiles need, as a person would write it."""
    parameters = Parameters((M, d))
    t = sp.Symbol("t", positive=True)
    empty = Program(parameters, (t,), (), (), ())
    limits = (empty.row("t d <= M", {t: Fraction(1), d: Fraction(1), M: Fraction(-1)}),)
    traffic = (empty.row("d/t", {d: Fraction(1), t: Fraction(-1)}),)
    extents = (parameters.form({d: Fraction(1)}),)
    program = Program(parameters, (t,), extents, traffic, limits)
    assert isinstance(program.solved((1, 2)), Infeasible)
    assert feasible(program, Cone.orthant(2)).facets == ((1, -1),)
    with pytest.raises(DomainError, match="no tiles fit: they need d <= M, which the regime rules out"):
        envelope(program, region_of(parameters, [(M, d)]))


def test_a_regime_that_contradicts_itself_is_refused() -> None:
    """The whole regime is shown, and the condition at which it breaks."""
    with pytest.raises(DomainError, match=r"the regime d <= M and M <= d contradicts itself at M <= d"):
        region_of(Parameters((M, d)), [(d, M), (M, d)])

"""The numbers at which laws are looked for: those that a schedule suggests, those of a regime's words, those of a list."""

from __future__ import annotations

from itertools import product

import pytest
import sympy as sp

from derive.attention import variant
from derive.errors import DomainError
from derive.exact import holds, value
from derive.laws import Open, Regime, Roles, looked_for
from derive.laws.listed import Listed
from derive.laws.numbers import POINTS, Numbers
from derive.laws.stated import Stated
from derive.schedule import Schedule
from derive.substitution import put
from derive.symbols import B_c, B_r, C, N, N_k, N_q, W, d, h, h_k
from derive.traffic import traffic
from rules.derivations import plan

ALIKE = {N_q: N, N_k: N}


def schedule(variant_name: str, mask: str, name: str = "flash2") -> Schedule:
    """A schedule with its heads left open where they are grouped."""
    found = variant(variant_name)
    return plan(name).derive(found.graph(mask, {s for pair in found.divides for s in pair})).schedule


@pytest.mark.parametrize("mask", ["window", "sinks", "chunk", "prefix"])
@pytest.mark.parametrize("variant_name", ["cross", "gqa"])
def test_both_ways_of_drawing_keep_to_the_regime_that_is_stated(variant_name: str, mask: str) -> None:
    """Where sizes of the mask fill tiles, too; of the regime's words alone nearly every drawing succeeds."""
    cut = schedule(variant_name, mask)
    alike = {} if variant_name == "cross" else ALIKE
    known = Roles.of(cut, alike, variant(variant_name).divides)
    everything = frozenset({*known.lengths, *known.tiles, *(s for s, _ in known.sizes), C, d, h, h_k})
    rounding = frozenset({B_r, B_c, C})
    seen = tried = 0
    for symbol, cut_too, (roomy, filled) in product(
        sorted(everything, key=str), (False, True), ((True, False), (False, True))
    ):
        drawing = Numbers(known, symbol, everything, rounding, (), cut_too, roomy, (), filled)
        for trial in range(3):
            tried += 1
            worded = Stated(drawing.regime, symbol, everything, rounding, known).along(trial)
            seen += worded is not None
            for points in (drawing.along(trial), worded or []):
                assert [drawing.regime.broken(at) for at in points] == [None] * len(points)
                values = [at[symbol.name] for at in points]
                assert values == sorted(set(values))
                assert len(points) in (0, POINTS)
    assert seen > 0.8 * tried


def test_a_length_may_be_as_short_as_its_condition_allows() -> None:
    """The words W + B_r <= N: of a few drawings some lie at the edge, and some do not."""
    at_edge = set()
    for trial in range(12):
        regime = Regime((N / B_r,), (sp.Le(W + B_r, N, evaluate=False),))
        points = Stated(
            regime, d, frozenset({N, W, B_r, d}), frozenset(), Roles((N,), {B_r: frozenset({N})}, ((W, N),))
        ).along(trial)
        assert points is not None
        at_edge.add(all(p["N"] - p["W"] - p["B_r"] < p["B_r"] for p in points))
    assert at_edge == {True, False}


def test_tiles_divide_all_that_a_list_packs() -> None:
    """Of 24, 36 and 60 the tiles are 1, 2, 3, 4, 6 and 12; of 3 and 5 there are too few, and that is said."""
    roles = Roles((N,), {B_r: frozenset({N}), B_c: frozenset({N})}, packed=(24, 36, 60))
    drawing = Listed(roles, B_r, frozenset({N, d, B_r, B_c}))
    points = drawing.along(0)
    assert [p["B_r"] for p in points] == [1, 2, 3, 4, 6, 12]
    assert {p["N"] for p in points} == {120}
    assert drawing.regime.whole == (12 / B_r, 12 / B_c)
    few = Roles((N,), {B_r: frozenset({N})}, packed=(3, 5))
    with pytest.raises(DomainError, match="fewer than 6 values of B_r divide all of 3, 5"):
        Listed(few, B_r, frozenset({N, B_r})).along(0)


def test_one_row_tile_covers_queries_that_it_is_no_divisor_of() -> None:
    """cross-backward under a window where N_q <= B_r: the tile is any number from N_q on."""
    cut = schedule("cross-backward", "window", "flash2-backward")
    known = Roles.of(cut, {}, ())
    condition = sp.Ge(B_r, N_q, evaluate=False)
    amount = put(traffic(cut).total.amount, {})
    (one,) = {c for c in amount.atoms(sp.core.relational.Relational) if {B_r, N_q} == c.free_symbols}
    inside = put(amount, {p: p.args[-1][0] for p in amount.atoms(sp.Piecewise) if p.args[0][1] == one})
    found = looked_for(inside, N_k, known, where=(condition,))
    assert not isinstance(found, Open)
    assert not any(q.has(B_r) for q in found.regime.whole)


def test_what_speaks_against_a_law_are_numbers_that_lie_on_none() -> None:
    """A rounding by 3: no polynomial of degree 3 goes through the amounts times the symbol, and they are the amounts."""
    amount = sp.ceiling(N / 3) * N
    found = looked_for(amount, N, Roles((N,)))
    assert isinstance(found, Open)
    assert [value(amount, at) for at in found.points] == list(found.values)
    x = sp.Symbol("x")
    through = sp.interpolate(
        [(at["N"], sp.Rational(v) * at["N"]) for at, v in zip(found.points, found.values, strict=True)], x
    )
    assert sp.degree(through, x) > 3
    assert all(holds(c, at) for c in found.regime.where for at in found.points)

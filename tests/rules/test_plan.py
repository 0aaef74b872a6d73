"""Named derivations: the tiles they are usually run with, and what their options set."""

from __future__ import annotations

import pytest

from derive.attention import variant
from derive.exact import value
from derive.rewrite import WherePossible
from derive.symbols import B_c, B_r, n_L2
from rules.derivations import names, plan
from rules.schedule import keep_resident, launch
from rules.schedule.interchange import QUERIES_OUTSIDE_HEADS


@pytest.mark.parametrize("name", names())
def test_usual_tiles_are_powers_of_two_that_fill_a_matrix_unit(name: str) -> None:
    """16 at least, the side of a tensor core's tile, or token by token; those solved from M are no numbers."""
    for tile, size in plan(name).tiles.items():
        if size.is_Integer:
            assert int(size) == 1 or int(size) >= 16, tile
            assert int(size) & (int(size) - 1) == 0, tile


@pytest.mark.parametrize(("memory", "rows", "columns"), [(116_736, 128, 228), (20_000, 40, 40), (20_481, 41, 41)])
def test_tiles_of_flash1_are_those_of_its_algorithm(memory: int, rows: int, columns: int) -> None:
    """B_c = ceil(M/(4 d)) and B_r = min(B_c, d) at d = 128: Dao et al. 2022, arXiv:2205.14135, algorithm 1, line 1."""
    tiles = plan("flash1").tiles
    numbers = {"M": memory, "d": 128}
    assert (value(tiles[B_r], numbers), value(tiles[B_c], numbers)) == (rows, columns)


@pytest.mark.parametrize("sawtooth", [False, True])
@pytest.mark.parametrize(("private", "caches"), [(False, 1), (True, n_L2)])
def test_a_cache_is_one_unless_it_is_said_to_be_private(sawtooth: bool, private: bool, caches: object) -> None:
    """One L2, or n_L2 of them; the sweep is another matter."""
    chosen = plan("flash2").ordered(sawtooth=sawtooth, private_caches=private)
    (kernel,) = chosen.derive(variant("mha").graph()).schedule.kernels
    assert kernel.residency is not None
    assert (kernel.residency.caches, kernel.residency.sawtooth) == (caches, sawtooth)


@pytest.mark.parametrize("name", names())
def test_an_order_or_a_cache_changes_nothing_but_what_stays_in_the_cache(name: str) -> None:
    """The other rules stand as they did; queries outside heads come just before it, where queries are on a forward grid."""
    plain = plan(name)
    resident = WherePossible(keep_resident.FORWARD)
    for chosen in (plain.ordered(sawtooth=True), plain.ordered(private_caches=True)):
        changed = [(a, b) for a, b in zip(plain.schedule, chosen.schedule, strict=True) if a != b]
        assert [a for a, _ in changed] == [resident] * plain.schedule.count(resident)
        assert all(isinstance(b, WherePossible) and b.rule.name == resident.rule.name for _, b in changed)
    turned = list(plain.ordered(order="query").schedule)
    outside = WherePossible(QUERIES_OUTSIDE_HEADS)
    if plain.direction == "forward" and launch.QUERIES in plain.schedule and resident in plain.schedule:
        assert turned.index(outside) == turned.index(resident) - 1
        turned.remove(outside)
    assert turned == list(plain.schedule)

"""Best tiles: closed forms against brute force over whole tiles, and against a convex solver."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import DomainError
from derive.exact import value
from derive.growth.classes import problems
from derive.growth.optimum import Problem, _largest, best, best_numerically
from derive.symbols import B_c, B_d, B_r, M, N, d
from rules.derivations import plan
from tests.derive.growth.known import TIED

solves = pytest.mark.skipif(
    find_spec("scipy") is None and not os.environ.get("CI"),
    reason="no SciPy on this machine; pip install 'attn-derive[optimise]'",
)
"""What asks the convex solver: skipped where there is none, but in CI, where a missing library is a failure."""


@cache
def problem(name: str) -> Problem:
    """What the one tiled kernel of a schedule minimises; ``product`` is a lone matrix product."""
    asked = ("square", "matmul") if name == "product" else (name, "mha")
    (found,) = problems(plan(asked[0]).derive(variant(asked[1]).graph("full", ())).schedule, TIED).values()
    return found


def test_flash2_fills_fast_memory_with_query_rows() -> None:
    """B_r (2 d + 3) + 2 d = M at B_c = 1: 4 N^2 d^2/M to leading order."""
    found = best(problem("flash2"))
    assert found is not None
    assert sp.simplify(found.tiles[B_r] - (M - 2 * d) / (2 * d + 3)) == 0
    assert found.tiles[B_c] == 1
    big = {d: 4096, M: 10**12, N: 10**15}
    assert abs(sp.Float((found.traffic / (N**2 * d**2 / M)).subs(big)) - 4) < 0.01


def test_flash1_fills_it_with_key_rows_at_a_higher_price() -> None:
    """Q, O in and O out at each pass: 6 N^2 d^2/M at the best, where the paper's B_c = M/(4 d) gives 12."""
    found = best(problem("flash1"))
    assert found is not None
    assert found.tiles[B_r] == 1
    big = {d: 4096, M: 10**12, N: 10**15}
    assert abs(sp.Float((found.traffic / (N**2 * d**2 / M)).subs(big)) - 6) < 0.01


def test_a_product_has_square_tiles_of_the_root_of_m() -> None:
    """IOOpt (Olivry et al. 2021) gives 2 N_i N_j N_k/(sqrt(S+1) - 1) + N_i N_j: the same tiles and the same traffic."""
    found = best(problem("product"))
    assert found is not None
    assert sp.simplify(found.tiles[B_r] - (sp.sqrt(M + 1) - 1)) == 0
    assert (found.smallest, found.equal) == ((B_d,), ((B_c, B_r),))
    assert sp.simplify(found.traffic - (2 * N**2 * d / (sp.sqrt(M + 1) - 1) + N**2)) == 0


@solves
@pytest.mark.parametrize("name", ["flash1", "flash2", "product", "row-resident"])
@settings(max_examples=12, deadline=None)
@given(length=st.integers(2, 40), head=st.integers(1, 8), fast=st.integers(8, 4000))
def test_no_whole_tiles_move_less(name: str, length: int, head: int, fast: int) -> None:
    """Every whole tile choice that fits, one by one, against the closed form or the solver where a tile meets its extent."""
    asked = problem(name)
    numbers = {"N": length, "d": head, "M": fast}
    limits = {t: int(value(e, numbers)) for t, e in asked.extents.items()}
    counts = []
    choices: list[dict[str, int]] = [{}]
    for tile, most in limits.items():
        choices = [{**c, tile.name: n} for c in choices for n in range(1, most + 1, max(1, most // 5))]
    for tiles in choices:
        if value(asked.footprint, {**numbers, **tiles}) <= fast:
            counts.append(float(value(asked.traffic, {**numbers, **tiles})))
    if not counts:
        with pytest.raises(DomainError, match="no tiles fit"):
            best_numerically(asked, {n: float(v) for n, v in numbers.items()})
        return
    solved = best_numerically(asked, {n: float(v) for n, v in numbers.items()})
    at = {s: v for s in asked.traffic.free_symbols for n, v in numbers.items() if s.name == n} | solved
    least = float(asked.traffic.subs(at))
    assert least <= min(counts) * (1 + 1e-6)
    closed = best(asked)
    assert closed is not None
    used = {x for e in (closed.traffic, *closed.tiles.values()) for x in e.free_symbols}
    by_symbol = {x: numbers[x.name] for x in used}
    sizes = {t: float(e.subs(by_symbol)) for t, e in closed.tiles.items()}
    if all(1 <= size <= limits[t] for t, size in sizes.items()):
        assert float(closed.traffic.subs(by_symbol)) == pytest.approx(least, rel=1e-6)


@solves
def test_what_is_no_geometric_program_is_refused() -> None:
    """A negative term, and a missing solver, are said so."""
    asked = Problem(N - B_r, B_r, {B_r: N})
    with pytest.raises(DomainError, match="is no posynomial"):
        best_numerically(asked, {"N": 8.0, "M": 8.0})


@solves
def test_two_unlike_tiles_have_no_closed_form_here() -> None:
    """They are left to the solver."""
    asked = Problem(N**2 * d / B_r + 3 * N**2 * d / B_c, B_r * B_c + B_r + B_c, {B_r: N, B_c: N})
    assert best(asked) is None
    found = best_numerically(asked, {"N": 1000.0, "d": 8.0, "M": 10_000.0})
    assert found[B_c] == pytest.approx(3 * found[B_r], rel=0.05)


@pytest.mark.parametrize("a", [1, 2, 5])
@pytest.mark.parametrize("b", [0, 3])
def test_the_largest_tile_fills_the_memory_to_the_last_element(a: int, b: int) -> None:
    """What is left over at the positive root of a quadratic footprint, or of a linear one, is nothing."""
    x, room = sp.Symbol("x", positive=True), sp.Symbol("m", positive=True)
    for excess in (a * x**2 + b * x - room, (a + b) * x - room):
        root = _largest(excess, x)
        assert root is not None
        assert sp.simplify(excess.subs(x, root)) == 0
        assert root.subs(room, 100) > 0

"""Sums over a mask's tiles against the tiles themselves, counted pair by pair."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.coverage import Coverage, coverage
from derive.einsum import Index
from derive.exact import value
from derive.growth.tile_bounds import TileBounds
from derive.mask import Mask, causal
from derive.schedule import Loop
from derive.symbols import ROW, B_c, B_r, N_k, N_q
from tests.strategies import extents, tiles

W = sp.Symbol("W", positive=True, integer=True)
LOOPS = (Loop((Index("q", N_q),), B_r, grid=True), Loop((Index("k", N_k),), B_c))
WINDOW = Mask("window", "the last W keys", "q", "k", N_q, N_k, first=ROW - W + 1, last=ROW)
MASKS = {
    "bottom-right": causal(N_q, N_k),
    "top-left": causal(N_q, N_k, align="top-left"),
    "window": WINDOW,
    "suffix": Mask("suffix", "keys from its own on", "q", "k", N_q, N_k, first=ROW),
}


def kept(name: str, sizes: dict[str, int]) -> set[tuple[int, int]]:
    """The pairs that a mask keeps, from its meaning."""
    n_q, n_k, window = sizes["N_q"], sizes["N_k"], sizes["W"]
    sees = {
        "bottom-right": lambda q, k: k <= q + n_k - n_q,
        "top-left": lambda q, k: k <= q,
        "window": lambda q, k: q - window < k <= q,
        "suffix": lambda q, k: k >= q,
    }[name]
    return {(q, k) for q in range(n_q) for k in range(n_k) if sees(q, k)}


def met(name: str) -> Coverage:
    """The tiles that it leaves under B_r by B_c."""
    found = coverage(MASKS[name], LOOPS)
    assert found is not None
    return found


sizes = st.fixed_dictionaries({"N_q": extents, "N_k": extents, "B_r": tiles, "B_c": tiles, "W": tiles})
by_mask = pytest.mark.parametrize("name", sorted(MASKS))


@by_mask
@settings(max_examples=120)
@given(numbers=sizes)
def test_bounds_enclose_the_tiles_met(name: str, numbers: dict[str, int]) -> None:
    """Tiles, key rows over row tiles and pairs, against sets of pairs."""
    pairs = kept(name, numbers)
    rows, keys, n_k = numbers["B_r"], numbers["B_c"], numbers["N_k"]
    pairs_of_tiles = {(q // rows, k // keys) for q, k in pairs}
    key_rows = sum(min(keys, n_k - j * keys) for _, j in pairs_of_tiles)
    up, low = (TileBounds(met(name), side) for side in (True, False))
    event("some" if pairs else "none")
    assert value(low.pairs, numbers) == len(pairs)
    assert value(low.tiles, numbers) <= len(pairs_of_tiles) <= value(up.tiles, numbers)
    assert value(low.key_rows, numbers) <= key_rows <= value(up.key_rows, numbers)


@by_mask
@settings(max_examples=120)
@given(numbers=sizes)
def test_bounds_enclose_what_the_count_puts_in_their_place(name: str, numbers: dict[str, int]) -> None:
    """The sums of the coverage, which traffic is made of; what is no sum stays."""
    exact = met(name)
    up, low = (TileBounds(exact, side) for side in (True, False))
    for sum_ in ("tiles", "key_rows"):
        here = value(getattr(exact, sum_), numbers)
        assert value(getattr(low, sum_), numbers) <= here <= value(getattr(up, sum_), numbers)
    for same in ("query_rows_once", "key_rows_once", "rows", "keys"):
        assert getattr(up, same) == getattr(low, same) == getattr(exact, same)


@pytest.mark.parametrize("name", ["bottom-right", "top-left"])
@settings(max_examples=400)
@given(numbers=sizes)
def test_bounds_enclose_the_query_rows_met(name: str, numbers: dict[str, int]) -> None:
    """With the keys outside: several row tiles, and every row sees a key. The last row tile may stay, which takes a 2."""
    assert value(met(name).query_rows, numbers) <= value(TileBounds(met(name), True).query_rows, numbers)
    if numbers["B_r"] < numbers["N_q"] and (name == "top-left" or numbers["N_q"] <= numbers["N_k"]):
        low = TileBounds(met(name), False)
        event("from below")
        assert value(low.query_rows, numbers) <= value(met(name).query_rows, numbers)


def test_small_tiles_meet_what_the_rows_tend_to() -> None:
    """Pairs over B_c, without the 2, at tiles that are small against the mask."""
    numbers = {"N_q": 2**20, "N_k": 2**20, "B_r": 2**8, "B_c": 2**8}
    tending = value(TileBounds(met("bottom-right"), False, tending=True).query_rows, numbers)
    assert float(Fraction(value(met("bottom-right").query_rows, numbers)) / tending) == pytest.approx(1, rel=0.01)


def test_the_last_row_tile_stays() -> None:
    """Two queries, two keys, tiles of one: the second query is brought in for the first key and stays for its own: 2, not 3."""
    numbers = {"N_q": 2, "N_k": 2, "B_r": 1, "B_c": 1}
    assert value(met("bottom-right").query_rows, numbers) == 2
    assert value(TileBounds(met("bottom-right"), False).query_rows, numbers) == Fraction(3, 2)


@by_mask
@settings(max_examples=120)
@given(numbers=sizes)
def test_a_row_tile_sees_no_more_keys_than_its_span(name: str, numbers: dict[str, int]) -> None:
    """From the first key of its first row to the last of its last row."""
    rows, seen = numbers["B_r"], {}
    for q, k in kept(name, numbers):
        seen.setdefault(q // rows, []).append(k)
    widest = max((max(ks) - min(ks) + 1 for ks in seen.values()), default=0)
    assert widest <= value(TileBounds(met(name), True).span, numbers)


def test_bounds_of_a_window_grow_with_the_window() -> None:
    """A tile of rows sees B_r + W keys, whatever the sequence; without a window it sees all."""
    assert sp.expand(TileBounds(met("window"), True).span - W - B_r) <= 0
    assert TileBounds(met("bottom-right"), True).span == N_k


@settings(max_examples=60)
@given(n=st.integers(1, 60), rows=tiles, keys=tiles)
def test_causal_bounds_are_a_constant_apart(n: int, rows: int, keys: int) -> None:
    """At N queries and keys the pairs are at least half the rectangle's, so upper and lower bound grow alike."""
    numbers = {"N_q": n, "N_k": n, "B_r": rows, "B_c": keys}
    bounds = TileBounds(met("bottom-right"), False)
    assert value(bounds.pairs, numbers) == Fraction(n * (n + 1), 2)

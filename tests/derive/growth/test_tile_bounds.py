"""Sums over a mask's tiles against the tiles themselves, counted pair by pair."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import event, given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.coverage import Coverage, coverage
from derive.einsum import Index
from derive.errors import DomainError
from derive.evaluate import kept_pairs
from derive.exact import value
from derive.growth import theta
from derive.growth.parameters import Condition
from derive.growth.posynomial import Facts, Term, above, below
from derive.growth.tile_bounds import TileBounds, _highest, _lowest, narrowest, regime_of
from derive.mask import Mask, causal
from derive.masks import Pattern, patterns
from derive.schedule import Loop
from derive.symbols import ROW, B_c, B_r, C_k, N, N_k, N_q, n_s
from tests.strategies import extents, tiles

W = sp.Symbol("W", positive=True, integer=True)
LOOPS = (Loop((Index("q", N_q),), B_r, grid=True), Loop((Index("k", N_k),), B_c))
MASKS = {
    "bottom-right": causal(N_q, N_k),
    "top-left": causal(N_q, N_k, align="top-left"),
    "suffix": Mask("suffix", "keys from its own on", "q", "k", N_q, N_k, first=ROW),
    **{
        f"{pattern} {' '.join(sorted(pattern.given))}": mask
        for pattern in patterns()
        if (mask := pattern.mask(N_q, N_k)) is not None and all(i.copies == 1 for i in mask.intervals)
    },
}
APART = sorted(name for name, mask in MASKS.items() if not mask.is_one_interval)


def kept(name: str, sizes: dict[str, int]) -> set[tuple[int, int]]:
    """The pairs that a mask keeps, one by one."""
    return set(zip(*map(tuple, np.nonzero(kept_pairs(MASKS[name], sizes))), strict=True))


def met(name: str) -> Coverage:
    """The tiles that it leaves under B_r by B_c."""
    found = coverage(MASKS[name], LOOPS)
    assert found is not None
    return found


KEYS = {"W": 1, "W_l": 0, "W_r": 0, "C_k": 1, "N_p": 1, "N_s": 0, "N_g": 0}
sizes = st.fixed_dictionaries(
    {"N_q": extents, "N_k": extents, "B_r": tiles, "B_c": tiles, **{k: st.integers(v, 9) for k, v in KEYS.items()}}
)
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
    rows = value(exact.query_rows_once, numbers)
    assert value(low.query_rows_once, numbers) <= rows <= value(up.query_rows_once, numbers)
    keys = value(exact.key_rows_once, numbers)
    assert value(low.key_rows_once, numbers) <= keys <= value(up.key_rows_once, numbers)
    for same in ("rows", "keys", *(["key_rows_once"] if MASKS[name].is_one_interval else [])):
        assert getattr(up, same) == getattr(low, same) == getattr(exact, same)


@pytest.mark.parametrize("name", ["bottom-right", "top-left", "window W"])
@settings(max_examples=60)
@given(numbers=sizes, parts=st.integers(1, 5))
def test_bounds_enclose_the_parts_met(name: str, numbers: dict[str, int], parts: int) -> None:
    """Of keys that are cut into parts those of which some query sees a key, one by one."""
    numbers |= {"n_s": parts, "N_k": parts * numbers["N_k"]}
    part, keys = Index("s", n_s), Loop((Index("k", N_k / n_s, part_of="k"),), B_c)
    exact = coverage(MASKS[name].cut("s", n_s), (Loop((part,), sp.Integer(1), grid=True), keys, LOOPS[0]))
    assert exact is not None
    met = {k // (numbers["N_k"] // parts) for _, k in kept(name, numbers)}
    assert value(exact.parts_met, numbers) == len(met)
    assert value(TileBounds(exact, False).parts_met, numbers) <= len(met)
    assert len(met) <= value(TileBounds(exact, True).parts_met, numbers)


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


@pytest.mark.parametrize("name", APART)
@settings(max_examples=60)
@given(numbers=sizes)
def test_bounds_enclose_what_key_tiles_in_turn_meet_under_a_union(name: str, numbers: dict[str, int]) -> None:
    """As many queries as keys, several row tiles, in the regime of a class: query rows brought in, and keys that are met."""
    length = max(numbers["N_q"], 2)
    numbers = {n: min(x, max(1, length // 6)) for n, x in numbers.items()} | {"N_q": length, "N_k": length}
    numbers |= {"B_r": min(numbers["B_r"], length - 1)}
    low, high = TileBounds(met(name), False), TileBounds(met(name), True)
    for what in ("query_rows", "key_rows_once", "key_tiles_once"):
        exact = value(getattr(met(name), what), numbers)
        assert value(getattr(low, what), numbers) <= exact <= value(getattr(high, what), numbers), what


def test_small_tiles_meet_what_the_rows_tend_to() -> None:
    """Pairs over B_c, without the 2, at tiles that are small against the mask."""
    numbers = {"N_q": 2**20, "N_k": 2**20, "B_r": 2**8, "B_c": 2**8}
    tending = value(TileBounds(met("bottom-right"), False, tending=True).query_rows, numbers)
    assert float(Fraction(value(met("bottom-right").query_rows, numbers)) / tending) == pytest.approx(1, rel=0.01)


def test_the_last_row_tile_stays() -> None:
    """Two queries, two keys, tiles of one: the second query is brought in for the first key and stays for its own: 2, not 3."""
    numbers = {"N_q": 2, "N_k": 2, "B_r": 1, "B_c": 1}
    low = TileBounds(met("bottom-right"), False)
    assert value(met("bottom-right").query_rows, numbers) == value(low.query_rows, numbers) == 2
    assert value(low.query_rows_met, numbers) == 3


@pytest.mark.parametrize("name", sorted(set(MASKS) - set(APART)))
@settings(max_examples=60)
@given(numbers=sizes)
def test_a_row_tile_sees_no_more_keys_than_its_span(name: str, numbers: dict[str, int]) -> None:
    """From the first key of its first row to the last of its last row."""
    rows, seen = numbers["B_r"], {}
    for q, k in kept(name, numbers):
        seen.setdefault(q // rows, []).append(k)
    widest = max((max(ks) - min(ks) + 1 for ks in seen.values()), default=0)
    (interval,) = MASKS[name].intervals
    assert widest <= value(TileBounds(met(name), True).span(interval), numbers)


TOGETHER = {N_q: N, N_k: N}
LENGTHS_APART = sorted(name for name in MASKS if not name.startswith(("global-local", "chunk C", "suffix")))


@cache
def enclosed(name: str, together: bool) -> tuple[tuple[Condition, ...], list[Term], list[Term]]:
    """The regime under a mask, and the terms above and below its pairs there."""
    alike = TOGETHER if together else {}
    regime = regime_of(MASKS[name], alike)
    amount = MASKS[name].pairs.xreplace(alike)
    known = Facts.of((amount,), regime, frozenset())
    at_least_one = ((sp.Integer(1), s) for small, _ in regime for s in small.free_symbols)
    assert theta(amount, [*regime, *at_least_one]).terms
    return tuple(regime), above(amount, known), below(amount, known)


@pytest.mark.parametrize(
    ("name", "together"),
    [(n, True) for n in sorted(MASKS) if regime_of(MASKS[n], TOGETHER)] + [(n, False) for n in LENGTHS_APART],
)
@settings(max_examples=60, deadline=None)
@given(numbers=sizes, length=st.integers(1, 60))
def test_pairs_lie_between_their_bounds_in_the_regime(
    name: str, together: bool, numbers: dict[str, int], length: int
) -> None:
    """And both are sums of monomials of one class: nothing is left over, and nothing is undecided."""
    regime, *bounds = enclosed(name, together)
    numbers |= {"N": length} if together else {}
    for small, big in regime:
        (size,) = small.free_symbols
        if big == N:
            numbers[size.name] = max(1, min(numbers[size.name], length // small.as_coeff_Mul()[0]))
        else:
            numbers[big.name] = max(numbers[big.name], value(small, numbers))
    numbers |= {"N_q": length, "N_k": length} if together else {}
    exact = value(MASKS[name].pairs, numbers)
    highest, lowest = ([value(t.coefficient * t.monomial, numbers) for t in terms] for terms in bounds)
    if all(value(small, numbers) <= value(big, numbers) for small, big in regime):
        event("inside")
        assert 0 < sum(lowest) <= exact <= sum(highest)


def test_a_length_that_is_a_number_and_keys_that_stand_apart_have_no_regime() -> None:
    """One sentence each, with the way out."""
    with pytest.raises(DomainError, match=r"mask=docs is a list for one length.*mask=chunk with a symbolic C"):
        regime_of(Pattern("docs", frozenset({"docs"}), (3, 4)).mask(N_q, N_k), {})
    with pytest.raises(DomainError, match=r"under mask=dilated a query's keys stand apart.*`derive explain`"):
        regime_of(Pattern("dilated").mask(N_q, N_k), {})


def test_chunks_that_end_on_the_last_of_more_keys_have_no_class() -> None:
    """The first query may stand anywhere in its chunk; top-left it stands at the start of one, and there is a class."""
    with pytest.raises(
        DomainError, match=r"keys of two lengths the first query may stand anywhere in its chunk, .*mask=chunk-tl"
    ):
        regime_of(MASKS["chunk C"], {})
    assert regime_of(MASKS["chunk-tl C"], {})
    assert regime_of(MASKS["chunk C"], {N_q: N, N_k: N})


@pytest.mark.parametrize("chunk", [1, 2, 5])
@pytest.mark.parametrize("past", [0, 3])
def test_a_line_under_a_stair_touches_it(chunk: int, past: int) -> None:
    """At the end of each step; from above a stair stands for itself, as a line does, and a minimum for its limit."""
    stair = C_k * sp.floor((ROW + past) / C_k)
    under = [value(stair - _lowest(stair), {"q": q, "C_k": chunk}) for q in range(3 * chunk)]
    assert (min(under), max(under)) == (0, chunk - 1)
    assert (_lowest(ROW - 3), _highest(ROW - 3), _highest(stair)) == (ROW - 3, ROW - 3, stair)
    assert _highest(sp.Min(ROW, N_k - 1)) == N_k - 1


def test_an_interval_that_no_row_moves_is_as_wide_as_it_is() -> None:
    """Keys 0 to 4 of 9: five, whatever the tile, and no key more."""
    mask = Mask("first", "", "q", "k", N_q, N_k, last=sp.Integer(4))
    bounds = TileBounds(Coverage(mask, *LOOPS), up=True)
    assert bounds.span(mask.intervals[0]) == 5


def test_selected_keys_under_a_mask_without_sizes_ask_for_no_regime() -> None:
    """Of causal keys as many as asked for are selected; of a window's no more than it has."""
    under = {name: variant("topk").graph(name).masks for name in ("causal", "window")}
    causal_, window = (regime_of(narrowest(masks), {}) for masks in under.values())
    assert causal_ == [(N_q, N_k)]  # the causal regime itself
    assert window
    assert all(small != 0 != big for small, big in window)

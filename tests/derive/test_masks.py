"""Every mask against its words, pair by pair and tile by tile, and the laws that all of them obey."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from derive.coverage import Coverage
from derive.einsum import Index
from derive.errors import BadValueError, UnknownNameError
from derive.evaluate import kept_pairs
from derive.exact import value
from derive.flops import Convention, Pipe, executed, flops
from derive.mask import Mask, causal
from derive.masks import MASKS, Pattern, patterns
from derive.replay import walk
from derive.schedule import Loop
from derive.symbols import ROW, B_c, B_r, N_k, N_q, h
from derive.traffic import compulsory, traffic
from tests.seen import seen
from tests.strategies import derivation, shapes, tiles

DOCUMENTS = ((7,), (3, 5), (1, 1, 9), (2, 11, 1, 6))
EVERY = [pattern for pattern in patterns(DOCUMENTS) if pattern.name != "full"]
every_mask = pytest.mark.parametrize("pattern", EVERY, ids=lambda p: f"{p}{' left right' * ('left' in p.given)}")
UNIONS = tuple(p.name for p in patterns() if (m := p.mask(N_q, N_k)) is not None and not m.is_one_interval)


LOOPS = Loop((Index("q", N_q),), B_r, grid=True), Loop((Index("k", N_k),), B_c)


@cache
def covered(pattern: Pattern) -> Coverage:
    """The tiles that a mask leaves."""
    return Coverage(made(pattern), *LOOPS)


@cache
def made(pattern: Pattern) -> Mask:
    """The mask over N_q queries and N_k keys."""
    mask = pattern.mask(N_q, N_k)
    assert mask is not None
    return mask


def at(pattern: Pattern, numbers: dict[str, int]) -> dict[str, int]:
    """*numbers* with the length that packed documents have."""
    return numbers if pattern.length is None else {**numbers, "N_q": pattern.length, "N_k": pattern.length}


def pairs(pattern: Pattern, **numbers: int) -> int:
    """How many pairs it keeps."""
    return int(value(made(pattern).pairs, numbers))


@every_mask
@settings(max_examples=10)
@given(numbers=shapes())
def test_every_mask_keeps_the_pairs_of_its_words(pattern: Pattern, numbers: dict[str, int]) -> None:
    """Intervals, closed forms of pairs, rows and keys, and the words: three ways to the same pairs."""
    numbers = at(pattern, numbers)
    kept, mask = seen(pattern, numbers["N_q"], numbers["N_k"], numbers), made(pattern)
    assert np.array_equal(kept, kept_pairs(mask, numbers))
    assert value(mask.pairs, numbers) == kept.sum()
    assert value(mask.keys_touched, numbers) == kept.any(0).sum()
    assert value(mask.rows_touched, numbers) == kept.any(1).sum()


@every_mask
@settings(max_examples=10)
@given(numbers=shapes())
def test_a_few_last_queries_see_what_they_see_among_all(pattern: Pattern, numbers: dict[str, int]) -> None:
    """What a query sees follows from where its own key stands: a decode step is the last row of prefill, under every mask."""
    numbers = at(pattern, numbers)
    queries, keys = sorted((numbers["N_q"], numbers["N_k"]))
    if pattern.name.endswith("-tl"):
        queries, keys = keys, queries
    few = kept_pairs(made(pattern), {**numbers, "N_q": queries, "N_k": keys})
    every = kept_pairs(made(pattern), {**numbers, "N_q": max(queries, keys), "N_k": max(queries, keys)})
    if pattern.name.endswith("-tl"):
        assert np.array_equal(few, every[:, :keys])
    else:
        assert np.array_equal(few, every[-queries:])


def assert_tiles(counted: Coverage, kept: npt.NDArray[np.bool_], numbers: dict[str, int]) -> None:
    """Tiles that hold one of the pairs *kept*, key and query rows in them, one by one."""
    rows = [kept[start : start + numbers["B_r"]] for start in range(0, len(kept), numbers["B_r"])]
    starts = range(0, kept.shape[1], numbers["B_c"])
    met = np.array([[part[:, start : start + numbers["B_c"]].any() for start in starts] for part in rows])
    keys = np.array([min(numbers["B_c"], kept.shape[1] - start) for start in starts])
    queries = np.array([len(part) for part in rows])
    assert value(counted.tiles, numbers) == met.sum()
    assert value(counted.key_rows, numbers) == (met @ keys).sum()
    assert value(counted.key_rows_once, numbers) == keys[met.any(0)].sum()
    assert value(counted.query_rows_once, numbers) == queries[met.any(1)].sum()
    assert value(counted.row_tiles, numbers) == met.any(1).sum()
    assert value(counted.key_tiles_once, numbers) == met.any(0).sum()


SIZES = {name: 2 for pattern in patterns() for name in pattern.sizes}
JUST_PAST_THE_KEYS = {**SIZES, "N_q": 5, "N_k": 3, "B_r": 4, "B_c": 2}
"""Under a top-left window of 2 the second row tile begins at query 4, whose first key would be the one past the last."""


@every_mask
@settings(max_examples=10)
@given(numbers=shapes())
@example(numbers=JUST_PAST_THE_KEYS)
def test_every_mask_leaves_the_tiles_that_hold_a_pair(pattern: Pattern, numbers: dict[str, int]) -> None:
    """Tiles met, key and query rows in them: exact with ragged tiles, whichever side is longer."""
    numbers = at(pattern, numbers)
    assert_tiles(covered(pattern), seen(pattern, numbers["N_q"], numbers["N_k"], numbers), numbers)


@every_mask
@settings(max_examples=4)
@given(numbers=shapes(), heads=st.integers(2, 4))
@example(numbers={**SIZES, "N_q": 5, "N_k": 2, "B_r": 3, "B_c": 2}, heads=2)
@example(numbers={**SIZES, "N_q": 2, "N_k": 5, "B_r": 3, "B_c": 2}, heads=2)
def test_heads_packed_into_a_row_tile_see_what_their_query_sees(
    pattern: Pattern, numbers: dict[str, int], heads: int
) -> None:
    """A tile of B_r rows, *heads* of them a query: tiles may begin and end inside a query, and blind rows stand for all."""
    numbers = at(pattern, numbers) | {"h": heads}
    packed = Loop((Index("q", N_q), Index("h", h)), B_r, grid=True)
    kept = seen(pattern, numbers["N_q"], numbers["N_k"], numbers).repeat(heads, axis=0)
    assert_tiles(Coverage(made(pattern), packed, LOOPS[1]), kept, numbers)


@settings(max_examples=15)
@given(numbers=shapes())
@example(numbers={**JUST_PAST_THE_KEYS, "N_q": 7, "N_k": 7, "B_c": 2})
def test_an_interval_that_is_empty_between_two_keys_meets_no_tile(numbers: dict[str, int]) -> None:
    """Keys from max(5, q - 2) to max(4, q): queries below 5 see none, although key 5 lies inside a tile."""
    mask = Mask("late", "", "q", "k", N_q, N_k, first=sp.Max(5, ROW - 2), last=sp.Max(4, ROW))
    assert_tiles(Coverage(mask, *LOOPS), kept_pairs(mask, numbers), numbers)


@pytest.mark.parametrize("schedule", ["naive", "flash2"])
@settings(max_examples=8)
@given(name=st.sampled_from(UNIONS), numbers=shapes())
def test_unions_of_intervals_are_walked_as_they_are_counted(schedule: str, name: str, numbers: dict[str, int]) -> None:
    """Sinks, global tokens and dilated windows: traffic of every tensor by the tile walker."""
    cut = derivation("mha", schedule, name).schedule
    walked, counted = walk(cut, numbers).moves, traffic(cut).by_tensor
    for tensor, moved in walked.items():
        move = counted.get(tensor)
        assert moved == ((value(move.read, numbers), value(move.write, numbers)) if move else (0, 0)), tensor


# --- laws -------------------------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(mask=st.sampled_from(MASKS), numbers=shapes())
def test_exact_is_at_most_tiled_and_tiled_at_most_whole_tiles_of_dense(mask: str, numbers: dict[str, int]) -> None:
    """Kept pairs <= pairs in the tiles that are run <= all pairs, rounded up to whole tiles; none below 0."""
    schedule = derivation("mha", "flash2", mask).schedule
    exact = value(flops(schedule.graph)[Pipe.SFU].amount, numbers)
    dense = value(flops(schedule.graph, Convention.DENSE)[Pipe.SFU].amount, numbers)
    tiled = value(executed(schedule)[Pipe.SFU].amount, numbers)
    whole = (
        -(-numbers["N_q"] // numbers["B_r"]) * numbers["B_r"] * -(-numbers["N_k"] // numbers["B_c"]) * numbers["B_c"]
    )
    assert 0 <= exact <= min(tiled, dense)
    assert tiled <= whole * numbers["B"] * numbers["h"]


@every_mask
@settings(max_examples=10)
@given(numbers=shapes())
def test_counts_lie_between_nothing_and_everything(pattern: Pattern, numbers: dict[str, int]) -> None:
    """0 <= pairs <= N_q N_k; keys and rows likewise; pairs at most keys touched times rows touched."""
    numbers, mask = at(pattern, numbers), made(pattern)
    kept, rows, keys = (value(x, numbers) for x in (mask.pairs, mask.rows_touched, mask.keys_touched))
    assert 0 <= rows <= numbers["N_q"]
    assert 0 <= keys <= numbers["N_k"]
    assert max(rows, keys) <= kept <= rows * keys


@pytest.mark.parametrize("pattern", [p for p in patterns() if p.name != "full"], ids=str)
@settings(max_examples=10)
@given(numbers=shapes(), more=st.integers(1, 9))
def test_more_tokens_keep_more_pairs(pattern: Pattern, numbers: dict[str, int], more: int) -> None:
    """In a square, pairs rise with N, and with every size of the mask but the dilation."""
    n = numbers["N_q"]
    square, larger = {**numbers, "N_q": n, "N_k": n}, {**numbers, "N_q": n + more, "N_k": n + more}
    assert value(made(pattern).pairs, square) <= value(made(pattern).pairs, larger)
    for name in pattern.sizes - {"n_d", "C_k"}:
        wider = {**numbers, name: numbers[name] + more}
        assert value(made(pattern).pairs, numbers) <= value(made(pattern).pairs, wider)


@given(a=st.integers(1, 10**6), b=st.integers(1, 10**6), more=st.integers(0, 9))
def test_a_window_of_all_keys_a_prefix_of_one_and_a_chunk_of_all_are_causal(a: int, b: int, more: int) -> None:
    """A window of N is causal, so are a left side without a right one, one chunk, a dilation of 1 over all keys."""
    numbers = {"N_q": a, "N_k": b}
    whole = pairs(Pattern("causal"), **numbers)
    assert pairs(Pattern("window"), W=max(a, b) + more, **numbers) == whole
    assert pairs(Pattern("window", frozenset({"left", "right"})), W_l=max(a, b) + more, W_r=0, **numbers) == whole
    assert pairs(Pattern("chunk"), C_k=max(a, b) + more, **numbers) == whole
    assert pairs(Pattern("sinks"), N_s=0, W=b + more, **numbers) == whole
    assert pairs(Pattern("prefix"), N_p=b + more, **numbers) == a * b


@given(n=st.integers(1, 300), window=tiles)
def test_a_dilation_of_one_is_a_window(n: int, window: int) -> None:
    """And a window with sinks but no sink is the window alone."""
    plain = pairs(Pattern("window"), N_q=n, N_k=n, W=window)
    assert pairs(Pattern("dilated"), N_q=n, N_k=n, W=window, n_d=1) == plain
    assert pairs(Pattern("sinks"), N_q=n, N_k=n, W=window, N_s=0) == plain


@given(a=st.integers(1, 10**5), b=st.integers(1, 10**5), left=st.integers(0, 99), right=st.integers(0, 99))
def test_a_mask_turned_round_is_aligned_the_other_way(a: int, b: int, left: int, right: int) -> None:
    """P_BR(a, b) = P_TL(b, a): for causal masks as it stands, and for two-sided windows."""
    assert pairs(Pattern("causal"), N_q=a, N_k=b) == pairs(Pattern("causal-tl"), N_q=b, N_k=a)
    form = frozenset({"left", "right"})
    sides = {"W_l": left, "W_r": right}
    turned = pairs(Pattern("window-tl", form), N_q=b, N_k=a, **sides)
    assert pairs(Pattern("window", form), N_q=a, N_k=b, **sides) == turned


@given(lengths=st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_packed_documents_add_up(lengths: list[int]) -> None:
    """Causal inside: sum s (s + 1)/2; whole: sum s^2; one document is causal, or full."""
    n = sum(lengths)
    form = frozenset({"docs"})
    inside = pairs(Pattern("docs", form, tuple(lengths)), N_q=n, N_k=n)
    whole = pairs(Pattern("docs-full", form, tuple(lengths)), N_q=n, N_k=n)
    assert (inside, whole) == (sum(s * (s + 1) // 2 for s in lengths), sum(s * s for s in lengths))
    assert pairs(Pattern("docs", form, (n,)), N_q=n, N_k=n) == value(causal(N_q, N_k).pairs, {"N_q": n, "N_k": n})
    assert pairs(Pattern("docs-full", form, (n,)), N_q=n, N_k=n) == n * n


@pytest.mark.parametrize(
    ("name", "own"), [("causal", "q + N_k - N_q"), ("causal-tl", "q"), ("window", "q + N_k - N_q")]
)
def test_the_words_say_where_a_query_s_own_key_stands(name: str, own: str) -> None:
    """The last query on the last key, or the first on the first; which of the two stands before the colon."""
    says = made(Pattern(name)).says
    assert ("N_k - N_q" in says) == ("N_k - N_q" in own)
    assert (", top-left: " in says, ", bottom-right: " in says) == (own == "q", own != "q")


def test_packed_documents_are_named_by_the_first_six_lengths() -> None:
    """Of seven the last is left out, and dots say so."""
    six = made(Pattern("docs", frozenset({"docs"}), (1, 2, 3, 4, 5, 6))).says
    seven = made(Pattern("docs-full", frozenset({"docs"}), (1, 2, 3, 4, 5, 6, 7))).says
    assert six.startswith("docs: packed 6 documents of 1,2,3,4,5,6 tokens, ")
    assert seven.startswith("docs-full: packed 7 documents of 1,2,3,4,5,6,... tokens, ")


@given(n=st.integers(1, 10**6), window=st.integers(1, 10**6))
def test_a_windowed_decode_step_touches_the_keys_of_its_window(n: int, window: int) -> None:
    """min(N, W) keys, and as many pairs."""
    numbers = {"N_q": 1, "N_k": n, "W": window, "d": 1, "d_v": 1, "h": 1, "B": 1}
    moves = compulsory(derivation("mha", "flash2", "window").schedule.graph).by_tensor
    assert value(moves["K"].read, numbers) == min(n, window) == pairs(Pattern("window"), N_q=1, N_k=n, W=window)


def test_long_sequences_are_counted_at_once() -> None:
    """N = 2^27 in tiles that divide nothing: sums over a million row tiles have a value, not a loop."""
    n = 2**27
    numbers = {"N_q": n, "N_k": n, "B_r": 120, "B_c": 176, "W": 1000, "C_k": 1000, "N_p": 1000, "N_s": 100}
    for name in ("window", "chunk", "prefix", "sinks"):
        assert 0 < value(covered(Pattern(name)).tiles, numbers) < (n // 120 + 1) * (n // 176 + 1)


def test_what_a_mask_does_not_use_or_lacks_is_refused() -> None:
    """A stray key, a list that is missing, half of a pair of keys, and a name that nobody knows."""
    with pytest.raises(BadValueError, match=r"W= is used by mask=window or sinks or dilated, and the mask is causal"):
        Pattern("causal", frozenset({"W"}))
    with pytest.raises(BadValueError, match="mask=docs needs the lengths of the documents, such as docs=512,512,1024"):
        Pattern("docs")
    with pytest.raises(BadValueError, match="mask=window with left= needs right= too"):
        Pattern("window", frozenset({"left"}))
    with pytest.raises(UnknownNameError, match="there is no mask 'widow'; did you mean window"):
        Pattern("widow")


@every_mask
def test_only_what_stands_apart_is_left_as_a_sum(pattern: Pattern) -> None:
    """Pairs have a closed form, whatever the mask, but for keys as far apart as a dilation says."""
    assert made(pattern).pairs.has(sp.Sum) is pattern.name.startswith("dilated")

"""The cache replay, against misses counted by hand on a few tiles."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.exact import value
from derive.lru import Cache, replay_cache
from derive.notation import cascade
from derive.replay import walk
from derive.schedule import Residency, Schedule, lift
from derive.symbols import N_k, N_q, b
from tests.strategies import derivation, fitted, masks, pairs, shapes

HEAD = {"N_q": 16, "N_k": 16, "d": 2, "d_v": 2, "h": 1, "h_k": 1, "B": 1, "B_r": 4, "B_c": 4}
"""One head: K and V have 4 tiles of 16 bytes each, 128 bytes in all, and there are 4 CTAs."""
FITS = 128
EVERYTHING = 10**6


def replayed(
    schedule: str, *, running: int, capacity: int, mask: str = "full", caches: int = 1, **changes: object
) -> dict[str, tuple[int, int]]:
    """Bytes read and written by tensor at 2 bytes an element; *changes* are numbers, the order or the sawtooth."""
    made = {name: changes.pop(name) for name in ("order", "sawtooth") if name in changes}
    variant = str(changes.pop("variant", "mha"))
    cut = derivation(variant, schedule, mask, **made).schedule  # type: ignore[arg-type]
    widths = dict.fromkeys(cut.graph.tensors, Fraction(2))
    numbers = {**HEAD, **changes}
    found = replay_cache(cut, numbers, running=running, capacity=capacity, caches=caches, widths=widths)  # type: ignore[arg-type]
    return {name: (int(read), int(written)) for name, (read, written) in found.items() if (read, written) != (0, 0)}


@pytest.mark.parametrize("running", [1, 2, 4, 99])
def test_keys_that_fit_are_read_once(running: int) -> None:
    """The 128 bytes of K and V stay, so 4 query tiles read them from HBM once, however many run at once."""
    once = {"Q": (64, 0), "K": (64, 0), "V": (64, 0), "O": (0, 64)}
    assert replayed("flash2", running=running, capacity=FITS) == once


@pytest.mark.parametrize(("running", "waves"), [(1, 4), (2, 2), (3, 2), (4, 1)])
def test_keys_that_do_not_fit_are_read_once_a_wave(running: int, waves: int) -> None:
    """One byte short, LRU keeps nothing of a cyclic sweep: ceil(4 / running) waves each read all of K and V."""
    found = replayed("flash2", running=running, capacity=FITS - 1)
    assert (found["K"], found["V"]) == ((64 * waves, 0), (64 * waves, 0))


def test_a_sawtooth_hits_what_the_last_wave_left() -> None:
    """2 waves, room for 6 of the 8 tiles: the second wave starts with those 6 and misses 2."""
    found = replayed("flash2", running=2, capacity=6 * 16, sawtooth=True)
    assert found["K"][0] + found["V"][0] == 128 + 2 * 16
    assert replayed("flash2", running=2, capacity=6 * 16)["K"] == (128, 0)


def test_heads_one_after_another_need_room_for_one() -> None:
    """2 heads, 4 CTAs at once: a head's K and V fit, and each is read once."""
    assert replayed("flash2", running=4, capacity=FITS, h=2)["K"] == (128, 0)


def test_heads_side_by_side_need_room_for_both() -> None:
    """2 heads with queries outermost, 2 CTAs at once: one of each head. Both slices must fit, else each wave reads them."""
    assert replayed("flash2", running=2, capacity=2 * FITS, h=2, order="query")["K"] == (128, 0)
    assert replayed("flash2", running=2, capacity=2 * FITS - 1, h=2, order="query")["K"] == (4 * 128, 0)


def test_private_caches_each_read_a_copy() -> None:
    """CTAs 0, 2 and 1, 3 go to two caches: each reads K and V once."""
    found = replayed("flash2", running=4, capacity=FITS, caches=2)
    assert found == {"Q": (64, 0), "K": (128, 0), "V": (128, 0), "O": (0, 64)}


def test_ctas_are_shared_out_among_the_caches() -> None:
    """2 at once on two caches is one each: a cache that is too small reads K and V for both of its CTAs, not for all."""
    assert replayed("flash2", running=2, capacity=FITS - 1, caches=2)["K"] == (4 * 64, 0)
    assert replayed("flash2", running=4, capacity=FITS - 1, caches=2)["K"] == (2 * 64, 0)
    assert replayed("flash2", running=1, capacity=FITS - 1, caches=2)["K"] == (4 * 64, 0)


def test_shared_kv_heads_are_read_once_for_the_group() -> None:
    """2 query heads on one KV head: K and V of the group are read once."""
    assert replayed("flash2", variant="gqa", running=1, capacity=FITS, h=2, h_k=1)["K"] == (64, 0)


def test_a_cache_smaller_than_a_tile_serves_nothing() -> None:
    """Every load is a miss: the count of the tile walker."""
    cut = derivation("mha", "flash2", "full").schedule
    found = replayed("flash2", running=4, capacity=15)
    assert {name: (2 * r, 2 * w) for name, (r, w) in walk(cut, HEAD).moves.items() if r or w} == found


def test_partial_sums_that_fit_cross_hbm_once() -> None:
    """Keys outside: m and l are written back at the end, O overwrites U in place, and Q is read once."""
    assert replayed("flash1", running=1, capacity=EVERYTHING) == {
        "Q": (64, 0),
        "K": (64, 0),
        "V": (64, 0),
        "m": (0, 32),
        "l": (0, 32),
        "O": (0, 64),
    }


def test_partial_sums_that_are_visited_once_stay_on_this_side_of_hbm() -> None:
    """A single key tile: the units are in the cache when they are read, and U never crosses."""
    found = replayed("flash1", running=1, capacity=EVERYTHING, N_k=4)
    assert "U_O" not in found
    assert found["m"] == (0, 32)


def test_partial_sums_that_do_not_fit_cross_hbm_at_every_visit() -> None:
    """4 visits of each tile; U's last write is that of O."""
    assert replayed("flash1", running=1, capacity=100) == {
        "Q": (256, 0),
        "K": (64, 0),
        "V": (64, 0),
        "m": (128, 128),
        "l": (128, 128),
        "U_O": (256, 192),
        "O": (0, 64),
    }


def test_scores_that_fit_are_read_back_from_the_cache() -> None:
    """Naive attention: S and P of 512 bytes each are written back once; with room for both and the operands none is read."""
    found = replayed("naive", running=4, capacity=2 * 512 + 64)
    assert (found["S"], found["P"]) == ((0, 512), (0, 512))


def test_scores_that_do_not_fit_are_read_back_from_hbm() -> None:
    """With less room than S alone, LRU keeps nothing of a sweep that is as long as the tensor."""
    found = replayed("naive", running=4, capacity=500)
    assert (found["S"], found["P"]) == ((512, 512), (512, 512))


def test_what_the_residency_does_not_name_cannot_hit() -> None:
    """Two operations read A in turn: the second hits only where its kernel says so of what was just written."""
    text = """
        Y[q,k] = A[q,k]
        z[q] = sum[k] Y[q,k] * A[q,k]
    """
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("z",), width=b)
    first, second = lift(graph).kernels
    cut = Schedule(graph, (first, second.with_(residency=Residency(("Y",)))))
    widths = dict.fromkeys(graph.tensors, Fraction(1))
    found = replay_cache(cut, {"N_q": 4, "N_k": 4}, running=1, capacity=EVERYTHING, widths=widths)
    assert found == {"A": (32, 0), "Y": (0, 16), "z": (0, 4)}


def test_without_residency_everything_crosses_hbm() -> None:
    """A schedule that models no cache moves what the walker counts."""
    cut = derivation("mha", "flash1", "causal").schedule
    bare = cut.replace(cut.kernels, cut.kernels[0].with_(residency=None))
    widths = dict.fromkeys(cut.graph.tensors, Fraction(1, 2))
    found = replay_cache(bare, HEAD, running=2, capacity=EVERYTHING, widths=widths)
    assert found == {name: (Fraction(r, 2), Fraction(w, 2)) for name, (r, w) in walk(bare, HEAD).moves.items()}


def test_the_least_recently_used_line_goes_first() -> None:
    """Room for two: a, b, a again, c evicts b and not a."""
    cache = Cache(2)
    a, b, c = ((0, name, ()) for name in "abc")
    for line in (a, b, a, c, a, b):
        cache.load(line, Fraction(1))
    assert dict(cache.read) == {"a": 1, "b": 2, "c": 1}


def test_a_dirty_line_is_written_once_when_it_leaves() -> None:
    """Stored twice and then read, it crosses HBM once, at eviction; a clean one never."""
    cache = Cache(1)
    line, other = (0, "x", ()), (0, "y", ())
    cache.store(line, Fraction(1))
    cache.store(line, Fraction(1))
    cache.load(line, Fraction(1))
    cache.load(other, Fraction(1))
    cache.flush()
    assert (dict(cache.read), dict(cache.written)) == ({"y": 1}, {"x": 1, "y": 0})


@settings(max_examples=150)
@given(
    pair=pairs,
    mask=masks,
    numbers=shapes(),
    running=st.integers(1, 9),
    capacity=st.integers(1, 400),
)
def test_hbm_moves_at_most_what_the_sms_move(
    pair: tuple[str, str], mask: str, numbers: dict[str, int], running: int, capacity: int
) -> None:
    """A cache only saves: tensor by tensor and direction by direction, and what must be written is.

    A result that is added to in memory may be written more often by the SMs than it leaves the cache.
    """
    cut, numbers = derivation(*pair, mask).schedule, fitted(pair[0], numbers)
    widths = dict.fromkeys(cut.graph.tensors, Fraction(1))
    found = replay_cache(cut, numbers, running=running, capacity=capacity, widths=widths)
    for name, (read, written) in walk(cut, numbers).moves.items():
        assert found[name][0] <= read
        assert found[name][1] <= written
    for name in cut.graph.outputs:
        assert found[name][1] >= value(cut.graph.tensors[name].size, numbers)

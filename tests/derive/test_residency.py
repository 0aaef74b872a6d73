"""HBM traffic of what CTAs share, against an LRU cache that replays every tile."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import DomainError
from derive.exact import holds, value
from derive.lru import replay_cache
from derive.notation import cascade
from derive.residency import dram, live_between
from derive.schedule import Schedule
from derive.sharing import Sharing, own_working_set, revisited, sharing, split_grid
from derive.symbols import B, B_r, N_k, N_q, b, b_s, h
from derive.traffic import compulsory, traffic
from rules.derivations import plan
from rules.schedule.examples import flash, fused, loop, streaming
from tests.strategies import derivation, mask_sizes, masks

WIDTH = 2
BYTES = dict.fromkeys(("b", "b_kv", "b_s", "b_p", "b_l"), WIDTH)


@lru_cache(maxsize=64)
def shared(name: str, mask: str, order: str, sawtooth: bool, private: bool) -> tuple[Schedule, Sharing]:
    """A schedule and how the CTAs of its one kernel share K and V."""
    chosen = plan("flash2").ordered(order=order, sawtooth=sawtooth, private_caches=private)
    cut = chosen.derive(variant(name).graph(mask)).schedule
    found = sharing(cut, cut.kernels[0])
    assert found is not None
    return cut, found


@st.composite
def grids(draw: st.DrawFn) -> dict[str, int]:
    """Shapes whose grids have up to some dozen CTAs and whose slices have several tiles."""
    heads = draw(st.integers(1, 3))
    return {
        "N_q": draw(st.integers(1, 24)),
        "N_k": draw(st.integers(1, 24)),
        "d": draw(st.integers(1, 2)),
        "d_v": draw(st.integers(1, 2)),
        "h_k": heads,
        "h": heads * draw(st.integers(1, 3)),
        "B": draw(st.integers(1, 2)),
        "B_r": draw(st.integers(1, 8)),
        "B_c": draw(st.integers(1, 8)),
        "C": draw(st.integers(1, 9)),
        **draw(mask_sizes()),
    }


@st.composite
def capacities(draw: st.DrawFn, found: Sharing, numbers: dict[str, int]) -> int:
    """A capacity: anything, or one next to a threshold at which something begins to fit."""
    at = {**numbers, **BYTES}
    step, whole = (int(value(x, at)) for x in (found.step_bytes, found.slice_bytes))
    live, waves = int(value(found.live, at)), draw(st.integers(1, 3))
    thresholds = (live * step, live * whole, whole, waves * whole, whole + step, 2 * whole)
    near = draw(st.sampled_from(thresholds)) + draw(st.sampled_from((-WIDTH, -1, 0, 1)))
    return max(1, near if draw(st.booleans()) else draw(st.integers(1, 4 * whole + 8)))


def compare(
    schedule: Schedule, found: Sharing, numbers: dict[str, int], capacity: int, caches: int = 1
) -> tuple[int, int, bool]:
    """Bytes of K and V that HBM sees: the closed form, the cache, and whether they must be equal."""
    at = {**numbers, **BYTES, "C_L2": capacity, "n_L2": caches}
    widths = dict.fromkeys(schedule.graph.tensors, Fraction(WIDTH))
    replayed = replay_cache(schedule, at, running=numbers["C"], capacity=capacity, caches=caches, widths=widths)
    moves = dram(schedule).by_tensor
    formula = sum(WIDTH * value(moves[t.name].read, at) for t in found.tensors)
    exact = holds(found.is_exact(masked=schedule.graph.mask is not None), at)
    return int(formula), int(sum(replayed[t.name][0] for t in found.tensors)), exact


def check(schedule: Schedule, found: Sharing, numbers: dict[str, int], capacity: int, caches: int = 1) -> None:
    """Equal where the count is exact; elsewhere the cache reads at most the count and at least each key once."""
    formula, witness, exact = compare(schedule, found, numbers, capacity, caches)
    least = sum(WIDTH * value(compulsory(schedule.graph).by_tensor[t.name].read, numbers) for t in found.tensors)
    assert least <= witness <= formula
    if exact:
        assert witness == formula


@pytest.mark.parametrize("order", ["head", "query"])
@settings(max_examples=350)
@given(data=st.data(), name=st.sampled_from(["mha", "gqa", "mqa"]), numbers=grids())
def test_a_forward_sweep_reads_what_the_cache_misses(
    order: str, data: st.DataObject, name: str, numbers: dict[str, int]
) -> None:
    """Both grid orders, thresholds and their neighbours included."""
    schedule, found = shared(name, "full", order, False, False)
    check(schedule, found, numbers, data.draw(capacities(found, numbers)))


@pytest.mark.parametrize("order", ["head", "query"])
@settings(max_examples=250)
@given(data=st.data(), name=st.sampled_from(["mha", "gqa", "mqa"]), numbers=grids())
def test_a_sawtooth_reads_what_the_cache_misses(
    order: str, data: st.DataObject, name: str, numbers: dict[str, int]
) -> None:
    """Odd waves sweep backwards and find the last tiles."""
    schedule, found = shared(name, "full", order, True, False)
    check(schedule, found, numbers, data.draw(capacities(found, numbers)))


@settings(max_examples=250)
@given(data=st.data(), numbers=grids())
def test_one_slice_is_exact_whatever_the_capacity(data: st.DataObject, numbers: dict[str, int]) -> None:
    """One head, forward or sawtooth: as soon as the tiles of a step fit, the count is the cache's."""
    numbers |= {"h": 1, "h_k": 1, "B": 1}
    sawtooth = data.draw(st.booleans())
    schedule, found = shared("mha", "full", "head", sawtooth, False)
    capacity = data.draw(capacities(found, numbers))
    formula, witness, exact = compare(schedule, found, numbers, capacity)
    assert exact or capacity < value(found.step_bytes, {**numbers, **BYTES})
    assert (witness == formula) if exact else (witness <= formula)


@settings(max_examples=200)
@given(data=st.data(), numbers=grids(), mask=masks, order=st.sampled_from(["head", "query"]), sawtooth=st.booleans())
def test_under_a_mask_the_count_is_exact_where_slices_fit(
    data: st.DataObject, numbers: dict[str, int], mask: str, order: str, sawtooth: bool
) -> None:
    """Elsewhere it is a bound from above."""
    schedule, found = shared("gqa", mask, order, sawtooth, False)
    check(schedule, found, numbers, data.draw(capacities(found, numbers)))


@settings(max_examples=200)
@given(data=st.data(), numbers=grids(), caches=st.sampled_from((2, 3, 4)), sawtooth=st.booleans())
def test_private_caches_read_a_copy_each(
    data: st.DataObject, numbers: dict[str, int], caches: int, sawtooth: bool
) -> None:
    """CTAs are dealt in turn; every cache that serves a sharer reads the slice."""
    order = data.draw(st.sampled_from(["head", "query"]))
    schedule, found = shared("gqa", data.draw(masks), order, sawtooth, True)
    capacity = data.draw(capacities(found, {**numbers, "n_L2": caches}))
    check(schedule, found, numbers, capacity, caches)


def test_waves_that_straddle_slices_evenly_touch_two_of_them() -> None:
    """4 heads of 4 query tiles, 6 CTAs at once: waves begin at even CTAs, so room for two slices reads each once."""
    numbers = {"N_q": 16, "N_k": 8, "d": 2, "d_v": 2, "h": 4, "h_k": 4, "B": 1, "B_r": 4, "B_c": 2, "C": 6}
    schedule, found = shared("mha", "full", "head", False, False)
    a_slice = WIDTH * 8 * (2 + 2)
    assert compare(schedule, found, numbers, 2 * a_slice) == (4 * a_slice, 4 * a_slice, True)


@pytest.mark.parametrize(("keys", "tile", "rows"), [(8, 2, 2), (9, 2, 2), (7, 3, 2), (12, 5, 1)])
def test_a_wave_that_ends_one_slice_and_begins_the_next_keeps_part_of_both(keys: int, tile: int, rows: int) -> None:
    """3 heads of 5 or 10 query tiles, 2 to 5 CTAs at once: every capacity from F to 2F, byte by byte, is counted exactly."""
    numbers = {"N_q": 10, "N_k": keys, "d": 1, "d_v": 1, "h": 3, "h_k": 3, "B": 1, "B_r": rows, "B_c": tile, "C": 2}
    for running in (2, 4, 5) if rows == 1 else (2,):  # of 4 every other wave ends where a slice ends
        schedule, found = shared("mha", "full", "head", False, False)
        a_slice = WIDTH * 2 * keys
        for capacity in range(a_slice, 2 * a_slice):
            formula, witness, exact = compare(schedule, found, {**numbers, "C": running}, capacity)
            assert exact
            assert formula == witness, capacity


@settings(max_examples=100)
@given(data=st.data(), numbers=grids(), caches=st.sampled_from((2, 3)))
def test_private_caches_of_one_slice_read_a_copy_each_under_a_mask(
    data: st.DataObject, numbers: dict[str, int], caches: int
) -> None:
    """As far as the last row of a wave sees, and each cache for itself."""
    numbers |= {"h": 1, "h_k": 1, "B": 1}
    schedule, found = shared("mha", "causal", "head", False, True)
    check(schedule, found, numbers, data.draw(capacities(found, {**numbers, "n_L2": caches})), caches)


def test_ctas_are_dealt_to_private_caches_with_what_they_come_back_to() -> None:
    """flash1: each of two caches holds Q, m, l and U of half of the CTAs that run."""
    one, two = (
        plan("flash1").ordered(private_caches=private).derive(variant("mha").graph()).schedule
        for private in (False, True)
    )
    at = {
        "N_q": 6,
        "N_k": 6,
        "d": 2,
        "d_v": 2,
        "h": 4,
        "h_k": 4,
        "B": 1,
        "B_r": 2,
        "B_c": 2,
        "C": 4,
        "n_L2": 2,
        **BYTES,
    }
    whole, half = (value(own_working_set(cut, cut.kernels[0]), at) for cut in (one, two))
    assert whole == 2 * half == WIDTH * 4 * (6 * 2 + 6 * 2 + 6 + 6)


@pytest.mark.parametrize(
    ("queries", "keys", "running"), [(12, 12, 2), (12, 12, 3), (12, 12, 5), (9, 14, 1), (9, 14, 2), (9, 14, 5)]
)
def test_under_a_causal_mask_a_wave_reads_as_far_as_its_last_row_sees(queries: int, keys: int, running: int) -> None:
    """One head, room for the tiles of one step: exact, ragged tiles included, when the first wave meets two key tiles."""
    numbers = {
        "N_q": queries,
        "N_k": keys,
        "d": 1,
        "d_v": 1,
        "h": 1,
        "h_k": 1,
        "B": 1,
        "B_r": 2,
        "B_c": 2,
        "C": running,
    }
    schedule, found = shared("mha", "causal", "head", False, False)
    formula, witness, _ = compare(schedule, found, numbers, int(value(found.step_bytes, {**numbers, **BYTES})))
    assert formula == witness


def test_shared_slices_and_partial_sums_need_room_together() -> None:
    """flash1 with grouped heads: what a CTA comes back to fits only beside the live K and V."""
    cut = derivation("gqa", "flash1", "full").schedule
    kernel, numbers = (
        cut.kernels[0],
        {"N_q": 6, "N_k": 6, "d": 2, "d_v": 2, "h": 4, "h_k": 2, "B": 1, "B_r": 2, "B_c": 2},
    )
    found = sharing(cut, kernel)
    assert found is not None
    at = {**numbers, **BYTES, "C": 2}
    room = int(value(found.live_bytes, at) + value(own_working_set(cut, kernel), at))
    read = dram(cut).by_tensor["Q"].read
    once = 4 * 6 * 2
    assert value(read, {**at, "C_L2": room}) == once
    assert value(read, {**at, "C_L2": room - 1}) == 3 * once


@pytest.mark.parametrize("name", ["gqa", "mqa", "bias", "cross"])
@settings(max_examples=40)
@given(numbers=grids(), capacity=st.integers(1, 3000), mask=st.sampled_from(["full", "causal"]))
def test_no_cache_reads_more_than_is_counted_beside_partial_sums(
    name: str, numbers: dict[str, int], capacity: int, mask: str
) -> None:
    """flash1: where a wave ends, what its CTAs came back to is younger than the keys that the next wave shares with it."""
    cut = derivation(name, "flash1", mask).schedule
    found = replay_cache(
        cut, numbers, running=numbers["C"], capacity=capacity, widths=dict.fromkeys(cut.graph.tensors, Fraction(WIDTH))
    )
    at = {**numbers, **BYTES, "C_L2": capacity}
    for tensor, move in dram(cut).by_tensor.items():
        assert found[tensor][0] <= WIDTH * value(move.read, at), tensor


@pytest.mark.parametrize(("running", "waves"), [(4, 1), (2, 2)])
def test_each_private_cache_streams_for_its_own_share_of_the_ctas(running: int, waves: int) -> None:
    """4 query tiles dealt to two caches a byte too small: each cache reads K and V once for each of its own waves."""
    numbers = {"N_q": 16, "N_k": 8, "d": 2, "d_v": 2, "h": 1, "h_k": 1, "B": 1, "B_r": 4, "B_c": 2, "C": running}
    schedule, found = shared("mha", "full", "head", False, True)
    a_slice = WIDTH * 8 * (2 + 2)
    formula, witness, _ = compare(schedule, found, numbers, a_slice - 1, 2)
    assert formula == witness == 2 * waves * a_slice


@pytest.mark.parametrize(("heads", "copies"), [(1, 2), (2, 1), (3, 2), (4, 1)])
def test_rounds_deal_a_slice_to_the_caches_that_its_turn_falls_on(heads: int, copies: int) -> None:
    """Queries outermost, two caches: with an even number of heads a head's CTAs all fall on one, with an odd on both."""
    numbers = {"N_q": 16, "N_k": 4, "d": 2, "d_v": 2, "h": heads, "h_k": heads, "B": 1, "B_r": 2, "B_c": 2, "C": 4}
    schedule, found = shared("mha", "full", "query", False, True)
    formula, witness, _ = compare(schedule, found, numbers, 10**5, 2)
    assert formula == witness == copies * heads * WIDTH * 4 * (2 + 2)


@settings(max_examples=150)
@given(numbers=grids(), capacity=st.integers(1, 3000), mask=masks)
def test_hbm_sees_no_more_than_the_sms_ask_for(numbers: dict[str, int], capacity: int, mask: str) -> None:
    """FlashAttention-1's partial sums and naive attention's scores included, tensor by tensor."""
    at = {**numbers, **BYTES, "C_L2": capacity}
    for schedule in ("flash1", "naive", "op-by-op", "row-resident", "flash2-packed"):
        cut = derivation("gqa", schedule, mask).schedule
        seen = traffic(cut).by_tensor
        for name, move in dram(cut).by_tensor.items():
            assert 0 <= value(move.read, at) <= value(seen[name].read, at)
            assert 0 <= value(move.write, at) <= value(seen[name].write, at)


@settings(max_examples=150)
@given(numbers=grids(), capacity=st.integers(1, 3000))
def test_keys_outside_come_back_to_queries_and_partial_sums_in_the_cache(
    numbers: dict[str, int], capacity: int
) -> None:
    """All of it fits, or none of it is counted as kept: exact at both ends of the range, and never below the cache."""
    cut = derivation("mha", "flash1", "full").schedule
    widths = dict.fromkeys(cut.graph.tensors, Fraction(WIDTH))
    at = {**numbers, **BYTES}
    everything = 10**6
    for room in (everything, capacity):
        found = replay_cache(cut, at, running=numbers["C"], capacity=room, widths=widths)
        for name, move in dram(cut).by_tensor.items():
            counted = WIDTH * value(move.read, {**at, "C_L2": room}), WIDTH * value(move.write, {**at, "C_L2": room})
            assert all(w <= c for w, c in zip(found[name], counted, strict=True)), name
            if room == everything:
                assert found[name] == counted, name


def test_what_an_earlier_kernel_has_just_written_is_found_while_both_fit() -> None:
    """P V reads P back: it needs P, V and O at once, to the byte."""
    cut = derivation("mha", "naive", "full").schedule
    reader = cut.kernels[-1]
    numbers = {"N_q": 6, "N_k": 5, "d": 2, "d_v": 3, "h": 2, "B": 1, **BYTES}
    room = int(value(live_between(cut, cut.graph.tensors["P"], reader), numbers))
    scores, values, result = 2 * 6 * 5, 2 * 5 * 3, 2 * 6 * 3
    assert room == WIDTH * (2 * scores + values + result)  # S and P of the softmax's kernel, then V and O
    read = dram(cut).by_tensor["P"].read
    assert value(read, {**numbers, "C_L2": room}) == 0
    assert value(read, {**numbers, "C_L2": room - 1}) == scores
    assert live_between(cut, cut.graph.tensors["P"], reader).has(b_s)


def test_a_grid_is_rounds_of_slices_of_sharers() -> None:
    """Heads outermost: X = B h slices of T_r sharers; queries outermost: T_r rounds of slices, each read by one."""
    heads, _ = shared("mha", "full", "head", False, False)
    queries, _ = shared("mha", "full", "query", False, False)
    tiles = heads.kernels[0].grid[-1].trips
    assert split_grid(heads.kernels[0], heads.graph.tensors["K"]) == (1, B * h, tiles)
    assert split_grid(queries.kernels[0], queries.graph.tensors["K"]) == (tiles, B * h, 1)
    assert tiles.free_symbols == {N_q, B_r}


def test_only_keys_outside_revisit() -> None:
    """flash2's CTAs read everything once; flash1's come back to Q, m, l and U."""
    flash1, flash2 = (derivation("mha", name, "full").schedule for name in ("flash1", "flash2"))
    assert revisited(flash2, flash2.kernels[0]) == ()
    assert {t.name for t in revisited(flash1, flash1.kernels[0])} == {"Q", "m", "l", "U_O"}


def test_without_a_residency_hbm_sees_what_the_sms_see() -> None:
    """No cache is modelled that no rule has put there."""
    assert sharing(flash(), flash().kernels[0]) is None
    assert dram(flash()) == traffic(flash())


def test_a_loop_order_that_is_not_counted_under_a_mask_is_refused() -> None:
    """Sequential rows outside the keys: their tiles stay in ways that no sum here counts."""
    graph = streaming("causal")
    schedule = fused(graph, loop(graph, "q"), loop(graph, "k"))
    skipping = Schedule(graph, (schedule.kernels[0].with_(skips_masked=True),))
    with pytest.raises(DomainError, match="tiles skipped under causal are counted with rows on the grid"):
        traffic(skipping)
    assert traffic(schedule).by_tensor["K"].read.has(N_k)


@settings(max_examples=200)
@given(
    slices=st.integers(1, 6),
    sharers=st.integers(1, 7),
    rounds=st.integers(1, 3),
    caches=st.integers(1, 3),
    running=st.integers(1, 12),
)
def test_a_wave_touches_no_more_slices_than_it_says(
    slices: int, sharers: int, rounds: int, caches: int, running: int
) -> None:
    """CTA by CTA, dealt to the caches in turn; where all are touched by every wave, each full one is seen to touch all."""
    X, n, r, c = map(sp.Integer, (slices, sharers, rounds, caches))
    found = Sharing((), X, n, r, sp.Integer(8), sp.Integer(2), c, False, sp.Integer(0))
    at = {"C": running}
    grid = [number for _ in range(rounds) for number in range(slices) for _ in range(sharers)]
    behind = value(found.running, at)
    assert behind == max(1, running // caches)
    holders = [{n % caches for n, of in enumerate(grid) if of == number} for number in range(slices)]
    assert max(map(len, holders)) <= value(found.copies, at)
    assert max(map(len, holders)) == value(found.copies, at) or sharers > 1
    for cache in range(caches):
        dealt = grid[cache::caches]
        waves = [dealt[start : start + behind] for start in range(0, len(dealt), behind)]
        assert max((len(set(wave)) for wave in waves), default=0) <= value(found.in_a_wave, at)
        assert len(waves) <= value(found.waves, at)
        met = sum(len(set(wave)) for wave in waves)
        assert met <= value(found.meetings, at)
        assert (met == value(found.meetings, at)) or caches > 1 or rounds > 1
        if caches == 1 and holds(found.covered, at):
            assert all(len(set(wave)) == slices for wave in waves if len(wave) == behind)


def test_the_mean_of_live_slices_is_a_share_of_the_running_ctas() -> None:
    """C/n, at least one slice and at most all; all when the grid comes back to each."""

    def live(running: int, slices: int = 4, rounds: int = 1) -> Fraction:
        X, r = sp.Integer(slices), sp.Integer(rounds)
        found = Sharing((), X, sp.Integer(2), r, sp.Integer(8), sp.Integer(2), sp.Integer(1), False, sp.Integer(0))
        return Fraction(value(found.mean_live, {"C": running}))

    assert [live(running) for running in (1, 4, 5, 100)] == [1, 2, Fraction(5, 2), 4]
    assert live(4, rounds=3) == 4
    assert live(100, slices=1) == 1


@pytest.mark.parametrize("sharers", [4, 6, 8, 9])
@pytest.mark.parametrize("caches", [2, 3])
def test_a_wave_behind_a_private_cache_touches_as_many_slices_as_are_said(sharers: int, caches: int) -> None:
    """Some wave, begun anywhere in some cache's CTAs, touches that many, where every cache has as many of each slice."""
    X, n, c = sp.Integer(9), sp.Integer(sharers), sp.Integer(caches)
    found = Sharing((), X, n, sp.Integer(1), sp.Integer(8), sp.Integer(2), c, False, sp.Integer(0))
    for running in range(1, 12):
        said = value(found.in_a_wave, {"C": running * caches})
        own = [[cta // sharers for cta in range(9 * sharers) if cta % caches == cache] for cache in range(caches)]
        most = max(len({*slices[at : at + running]}) for slices in own for at in range(len(slices)))
        assert most == said if sharers % caches == 0 else most <= said


@pytest.mark.parametrize(("sharers", "exact"), [(4, True), (8, True), (5, False), (3, False)])
def test_private_caches_are_counted_exactly_where_each_has_as_many_sharers(sharers: int, exact: bool) -> None:
    """Dealt evenly to two caches, with room for all: else one of them may read a slice that is counted for both."""
    n, two = sp.Integer(sharers), sp.Integer(2)
    found = Sharing((), two, n, sp.Integer(1), sp.Integer(8), two, two, False, sp.Integer(0))
    assert holds(found.is_exact(masked=False), {"C": 4, "C_L2": 100}) == exact
    assert not holds(found.is_exact(masked=False), {"C": 4, "C_L2": 1})


def test_without_a_residency_no_cta_comes_back_to_anything() -> None:
    """Nothing is kept, and so no byte of it."""
    cut = derivation("mha", "flash1", "full").schedule
    assert own_working_set(cut, replace(cut.kernels[0], residency=None)) == 0


def test_what_the_outermost_and_the_innermost_loop_carry_is_revisited() -> None:
    """A product with i, j and k one inside the other: A[i,k] is swept again for each j, C[i,j] is not."""
    graph = cascade("C[i,j] = sum[k] A[i,k] * B[k,j]", dict.fromkeys("ijk", N_q), outputs=("C",), width=b)
    cut = fused(graph, *(loop(graph, name) for name in "ijk"))
    assert "A" in {t.name for t in revisited(cut, cut.kernels[0])}
    assert "C" not in {t.name for t in revisited(cut, cut.kernels[0])}

"""A cache between HBM and the SMs: each slice is read once while the live ones fit."""

import pytest

from derive.exact import holds, value
from derive.residency import dram
from derive.rewrite import apply_once
from derive.schedule import Schedule, lift
from derive.symbols import n_L2
from derive.traffic import compulsory, traffic
from rules.schedule.examples import flash, fused, loop, streaming, three_pass
from rules.schedule.fuse import BETWEEN_PRODUCTS
from rules.schedule.keep_resident import FORWARD, RULES, SAWTOOTH, eligible, keep_resident

ONE_HEAD = {"N_q": 16, "N_k": 16, "d": 2, "d_v": 2, "h": 1, "B": 1, "B_r": 4, "B_c": 4}
"""F = 16 (2 + 2) 2 = 128 bytes of K and V, read by 4 CTAs."""
BYTES = {"b": 2, "b_kv": 2, "b_s": 2, "b_p": 2, "b_l": 2}


def reads(schedule: object, capacity: int, running: int, **numbers: int) -> int:
    """Bytes of K and V read from HBM."""
    assert isinstance(schedule, Schedule)
    at = {**ONE_HEAD, **BYTES, "C": running, "C_L2": capacity, **numbers}
    moves = dram(schedule).by_tensor
    return int(sum(2 * value(moves[name].read, at) for name in ("K", "V")))


@pytest.mark.parametrize("heads", [1, 2, 5])
def test_each_slice_is_read_once_while_the_live_ones_fit(heads: int) -> None:
    """X F bytes: compulsory traffic, where the SMs ask for 4 times as much."""
    step = apply_once(FORWARD, FORWARD.example())
    assert reads(step.after, 128, 4, h=heads) == heads * 128
    assert reads(step.before, 128, 4, h=heads) == 4 * heads * 128
    once = compulsory(step.before.graph).by_tensor["K"].read  # type: ignore[union-attr]
    assert 2 * 2 * value(once, {**ONE_HEAD, "h": heads}) == heads * 128


@pytest.mark.parametrize(("running", "waves"), [(1, 4), (2, 2), (3, 2), (4, 1)])
def test_a_slice_that_does_not_fit_is_read_once_a_wave(running: int, waves: int) -> None:
    """I F bytes, one byte short of F."""
    assert reads(apply_once(FORWARD, flash()).after, 127, running) == waves * 128


def test_nothing_is_shared_when_the_tiles_of_a_step_do_not_fit() -> None:
    """Then every read of an SM reaches HBM."""
    assert reads(apply_once(FORWARD, flash()).after, 31, 2) == 4 * 128


def test_a_sawtooth_saves_what_the_last_wave_left() -> None:
    """Two waves, room for 6 of 8 tiles of 16 bytes: the second misses 2."""
    assert reads(apply_once(SAWTOOTH, flash()).after, 96, 2) == 128 + 2 * 16


def test_private_caches_each_read_a_copy() -> None:
    """Two caches: twice X F."""
    step = apply_once(keep_resident(caches=n_L2), flash())
    assert reads(step.after, 128, 4, n_L2=2) == 2 * 128


def test_the_condition_is_that_the_live_slices_fit() -> None:
    """H F <= C_L2, printed beside the step."""
    step = apply_once(FORWARD, flash())
    for capacity in (127, 128):
        at = {**ONE_HEAD, **BYTES, "C": 4, "C_L2": capacity}
        assert holds(step.condition, at) == (capacity == 128)


def test_the_sms_see_what_they_saw() -> None:
    """A cache changes where a read is served, not how many there are."""
    for rule in RULES:
        step = apply_once(rule, flash())
        assert traffic(step.before) == traffic(step.after)  # type: ignore[arg-type]


def test_what_is_read_twice_or_just_written_is_eligible() -> None:
    """flash2: K and V, never O; keys outside: Q and the partial sums too; naive attention: what the last kernel wrote."""
    graph = streaming()
    outside = fused(graph, loop(graph, "k"), loop(graph, "q"))
    assert {"K", "V"} <= set(eligible(flash(), flash().kernels[0]))
    assert "O" not in eligible(flash(), flash().kernels[0])
    assert set(eligible(outside, outside.kernels[0])) == {"Q", "K", "V", "m", "l", "U_O"}
    cut = apply_once(BETWEEN_PRODUCTS, lift(three_pass())).after
    assert isinstance(cut, Schedule)
    assert eligible(cut, cut.kernels[-1]) == ("P",)

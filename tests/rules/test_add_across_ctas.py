"""A CTA for each key tile of a backward pass: what its shares of dQ move, that they sum to dQ, and what the L2 then sees."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.errors import PreconditionError
from derive.exact import value
from derive.flops import Pipe, executed, is_contraction
from derive.lru import replay_cache
from derive.masks import Pattern, patterns
from derive.replay import walk
from derive.replay_arrays import Walker
from derive.residency import kernel_dram
from rules.derivations import plan
from tests.published.questions import ask
from tests.rules.meaning import cache_agrees, computes_its_graph, counted, walked
from tests.strategies import derivation, shapes

ATOMIC = "flash2-backward-atomic"
variants = st.sampled_from(("mha-backward", "gqa-backward", "alibi-backward"))
masks = st.sampled_from([p for p in patterns() if p.name in ("full", "causal", "window", "prefix", "sinks-tl")])


@settings(max_examples=20)
@given(name=variants, mask=masks, numbers=shapes())
def test_each_share_is_read_and_written(name: str, mask: Pattern, numbers: dict[str, int]) -> None:
    """The walker's count, work and values, ragged tiles and tiles that the mask empties included."""
    schedule = derivation(name, ATOMIC, mask).schedule
    assert counted(schedule, numbers) == walked(schedule, numbers)
    points = walk(schedule, numbers).points
    work = value(executed(schedule)[Pipe.MMA].amount, numbers)
    assert work == sum(2 * points[e.output.name] for e in schedule.graph.einsums if is_contraction(e))
    assert computes_its_graph(schedule, numbers)


@settings(max_examples=15)
@given(
    name=variants, mask=masks, numbers=shapes(), running=st.sampled_from((1, 3, 8)), capacity=st.sampled_from((96, 900))
)
def test_the_cache_sees_no_more_of_the_shares_than_is_counted(
    name: str, mask: Pattern, numbers: dict[str, int], running: int, capacity: int
) -> None:
    """An LRU cache of any size; what the last kernel reads of dQ is left out of the count, and added to the bound."""
    schedule = derivation(name, ATOMIC, mask).schedule
    assert cache_agrees(schedule, numbers, running=running, capacity=capacity)
    (kernel,) = (k for k in schedule.kernels if k.atomic)
    tensors = schedule.graph.tensors
    at = {**numbers, "C": running, "C_L2": capacity, "n_L2": 1}
    at |= {str(s): 2 for t in tensors.values() for s in t.width.free_symbols}
    replayed = replay_cache(schedule, at, running=running, capacity=capacity, widths=dict.fromkeys(tensors, 2))
    moves = kernel_dram(schedule, kernel).by_tensor
    for tensor in schedule.added_up_of(kernel):
        read, written = replayed[tensor.name]
        assert read <= 2 * value(moves[tensor.name].read + tensor.size, at)
        assert written <= 2 * value(moves[tensor.name].write, at)


def test_the_shares_of_a_head_at_8192() -> None:
    """64 key tiles of 128: dQ in fp32 is zeroed, read and written 64 times, 256 MiB each way; a third kernel converts it."""
    found = ask("mha-backward N=8192 d=128 Bc=128", ATOMIC)
    (total,) = (t for k in found.derivation.schedule.kernels for t in found.derivation.schedule.added_up_of(k))
    moved = found.sm.by_tensor[total.name]
    assert found.exact(moved.write) == (1 + 64) * 8192 * 128 * 4
    assert found.exact(moved.read) == 65 * 8192 * 128 * 4
    assert found.exact(found.sm.by_tensor["dQ"].write) == 8192 * 128 * 2
    assert [str(k.nest) for k in found.derivation.schedule.kernels][1].endswith("grid k by B_c, for q by B_r")


def test_the_shares_of_a_causal_head_are_those_of_the_tiles_it_keeps() -> None:
    """A key tile of 128 meets the row tiles of 64 from its own on: 2 (64 + 63 + ... + 1) visits of 64 rows."""
    found = ask("mha-backward N=8192 d=128 Bc=128 Br=64 mask=causal", ATOMIC)
    (total,) = (t for k in found.derivation.schedule.kernels for t in found.derivation.schedule.added_up_of(k))
    shares = 2 * (64 * 65 // 2) * 64 * 128 * 4
    assert found.exact(found.sm.by_tensor[total.name].write) == shares + 8192 * 128 * 4


def test_zeros_are_written_where_no_share_is_added_too() -> None:
    """A window of 16 over 64 queries and 16 keys, top-left: queries past it add nothing, and their dQ is zero."""
    schedule = derivation("cross-backward", ATOMIC, "window-tl").schedule
    numbers = {"B": 1, "h": 1, "h_k": 1, "N_q": 64, "N_k": 16, "d": 4, "d_v": 4, "W": 16, "B_r": 8, "B_c": 16}
    (kernel,) = (k for k in schedule.kernels if k.atomic)
    (tensor,) = schedule.added_up_of(kernel)
    assert counted(schedule, numbers)[tensor.name][1] == 64 * 4 + 32 * 4
    assert counted(schedule, numbers) == walked(schedule, numbers)
    assert Walker(schedule).walk(numbers).moves == walk(schedule, numbers).moves


def test_q_and_do_move_as_often_as_with_one_cta_a_head() -> None:
    """The same passes: only where dQ lives between them differs."""
    one, many = (ask("gqa-backward N=2048 h=8 hk=2 d=128", name) for name in ("flash2-backward", ATOMIC))
    for name in ("Q", "dO", "K", "V", "dK", "dV"):
        assert one.exact(one.sm.by_tensor[name].read) == many.exact(many.sm.by_tensor[name].read)
        assert one.exact(one.sm.by_tensor[name].write) == many.exact(many.sm.by_tensor[name].write)
    assert one.exact(one.executed[Pipe.MMA]) == many.exact(many.executed[Pipe.MMA])


def test_a_forward_pass_has_no_sum_that_ctas_could_add_to() -> None:
    """Its plan is one of backward passes."""
    with pytest.raises(PreconditionError, match="schedules a backward pass and this is a forward one"):
        ask("mha N=8192", ATOMIC)
    assert plan(ATOMIC).after == "flash2"


def test_key_tiles_that_start_at_different_queries_share_nothing_as_they_stream() -> None:
    """Under a causal mask CTAs are not in step: once the slices do not fit, every read counts."""
    numbers = {"N_q": 5, "N_k": 9, "d": 2, "d_v": 3, "h_k": 2, "h": 2, "B": 2, "B_r": 2, "B_c": 6}
    assert cache_agrees(derivation("mqa-backward", ATOMIC, "causal").schedule, numbers, running=8, capacity=192)

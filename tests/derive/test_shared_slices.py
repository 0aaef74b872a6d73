"""Tensors of several kinds that CTAs share at once, against the LRU replay: a bias of all heads beside each head's K and V."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from derive.exact import holds, value
from derive.lru import replay_cache
from derive.residency import dram
from derive.sharing import sharings
from tests.rules.meaning import cache_agrees
from tests.strategies import derivation, shapes

SEVERAL = ("bias", "bias-per-head", "bias-per-key", "alibi", "sink-logits", "grouped-latent", "grouped-tied")
"""Variants whose shared tensors are carried by different grid loops."""
HEAD_BY_HEAD = {"N_q": 2, "N_k": 3, "d": 1, "d_v": 3, "h": 1, "h_k": 1, "B": 1, "B_r": 1, "B_c": 1, "B_d": 1}
SEQUENCE_BY_SEQUENCE = {"N_q": 2, "N_k": 1, "d": 1, "d_v": 1, "h": 2, "h_k": 1, "B": 2, "B_r": 1, "B_c": 1, "B_d": 1}


@settings(max_examples=150)
@given(
    name=st.sampled_from(SEVERAL),
    mask=st.sampled_from(["full", "causal"]),
    numbers=shapes(),
    running=st.integers(1, 8),
    capacity=st.integers(1, 800),
)
@example(name="alibi", mask="full", numbers=HEAD_BY_HEAD, running=1, capacity=24)
@example(name="sink-logits", mask="full", numbers=SEQUENCE_BY_SEQUENCE, running=1, capacity=8)
def test_slices_of_several_kinds_leave_room_for_each_other(
    name: str, mask: str, numbers: dict[str, int], running: int, capacity: int
) -> None:
    """HBM reads of each kind are what the cache shows where the count is exact, and no less than it shows elsewhere."""
    cut = derivation(name, "flash2", mask).schedule
    widths = dict.fromkeys(cut.graph.tensors, Fraction(2))
    at = {**numbers, "C": running, "C_L2": capacity, "n_L2": 1}
    at |= {str(s): 2 for t in cut.graph.tensors.values() for s in t.width.free_symbols}
    replayed = replay_cache(cut, at, running=running, capacity=capacity, caches=1, widths=widths)
    moves = dram(cut).by_tensor
    found = [s for kernel in cut.kernels for s in sharings(cut, kernel)]
    assert len(found) > 1
    for shared in found:
        counted = sum(2 * value(moves[t.name].read, at) for t in shared.tensors)
        shown = sum(replayed[t.name][0] for t in shared.tensors)
        assert shown <= counted
        if holds(shared.is_exact(masked=mask != "full"), at):
            assert shown == counted


@pytest.mark.parametrize("running", [1, 2, 3, 8])
def test_partial_sums_of_a_whole_round_pass_before_the_grid_comes_back(running: int) -> None:
    """A logit a head, read again for each row tile once all heads had theirs: flash1, queries outermost, any capacity."""
    schedule = derivation("sink-logits", "flash1", "full", order="query").schedule
    numbers = {"N_q": 4, "N_k": 1, "d": 1, "d_v": 3, "h": 4, "B": 2, "B_r": 1, "B_c": 1}
    assert all(cache_agrees(schedule, numbers, running=running, capacity=room) for room in range(8, 200, 4))

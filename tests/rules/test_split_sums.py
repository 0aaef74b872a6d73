"""The deterministic backward pass, dQ summed in a copy for each part of the keys: what that moves, and the room it takes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import BadValueError, PreconditionError
from derive.evaluate import evaluate
from derive.exact import value
from derive.execute import execute
from derive.flops import Pipe, executed, is_contraction
from derive.footprint import memory_peak
from derive.lru import replay_cache
from derive.masks import Pattern, patterns
from derive.replay import walk
from derive.replay_arrays import Walker
from derive.residency import dram
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.sharing import sharing
from outputs.splits import deterministic_count, splits
from rules.algebra.split_sums import RULE
from rules.derivations import plan
from rules.schedule import finish_after, in_memory
from tests.published.questions import ask, total
from tests.rules.meaning import counted, inputs_of, scalars_of, walked
from tests.strategies import PAIRS, derivation, shapes

SPLIT, ATOMIC, PLAIN = "flash2-backward-split", "flash2-backward-atomic", "flash2-backward"
NAMES = tuple(name for name, schedule in PAIRS if schedule == SPLIT)
names = st.sampled_from(NAMES)
masks = st.sampled_from(
    [p for p in patterns(((3, 4, 5),)) if p.name in ("full", "causal", "window-tl", "prefix", "chunk")]
)


def test_it_fits_every_variant_that_the_atomic_one_fits() -> None:
    """Biases, positions, dropout and latents included."""
    assert {name for name, schedule in PAIRS if schedule == ATOMIC} == set(NAMES)


@settings(max_examples=12)
@given(name=names, mask=masks, numbers=shapes())
def test_the_closed_forms_are_what_is_walked_and_run(name: str, mask: Pattern, numbers: dict[str, int]) -> None:
    """Traffic by both walkers, work, and the gradients of the variant's own graph; parts end in ragged tiles."""
    schedule = derivation(name, SPLIT, mask).schedule
    assert counted(schedule, numbers) == walked(schedule, numbers)
    walk_ = walk(schedule, numbers)
    assert Walker(schedule).walk(numbers) == walk_
    work = value(executed(schedule)[Pipe.MMA].amount, numbers)
    assert work == sum(2 * walk_.points[e.output.name] for e in schedule.graph.einsums if is_contraction(e))
    graph = variant(name).graph(mask)
    inputs, scalars = inputs_of(graph, numbers), scalars_of(graph)
    wanted, found = evaluate(graph, inputs, scalars, numbers), execute(schedule, inputs, scalars, numbers)
    for output in graph.outputs:
        np.testing.assert_allclose(found[output], wanted[output], rtol=1e-9, atol=1e-11)


@settings(max_examples=25)
@given(name=names, numbers=shapes(), running=st.integers(1, 8), capacity=st.integers(1, 900))
def test_hbm_reads_of_what_ctas_share_are_bounded(
    name: str, numbers: dict[str, int], running: int, capacity: int
) -> None:
    """Q and dO are swept once a key tile by every part of a head: whether a head stays or not, an LRU cache reads no more."""
    schedule = derivation(name, SPLIT, "full").schedule
    at = {**numbers, "C": running, "C_L2": capacity, "n_L2": 1}
    at |= {str(s): 2 for t in schedule.graph.tensors.values() for s in t.width.free_symbols}
    widths = dict.fromkeys(schedule.graph.tensors, Fraction(2))
    replayed = replay_cache(schedule, at, running=running, capacity=capacity, widths=widths)
    (kernel,) = (k for k in schedule.kernels if k.loop_of("s") in k.grid)
    shared = sharing(schedule, kernel)
    assert shared is not None
    moves = dram(schedule).by_tensor
    witness = sum(replayed[t.name][0] for t in shared.tensors)
    assert witness <= sum(2 * value(moves[t.name].read, at) for t in shared.tensors)


def alone(numbers: dict[str, int]) -> tuple[dict[str, tuple[int, int]], Schedule]:
    """What one head's split backward moves."""
    schedule = derivation("mha-backward", SPLIT, "full").schedule
    return counted(schedule, {"B": 1, "h": 1, "h_k": 1, "d": 4, "d_v": 4, **numbers}), schedule


def test_as_many_parts_as_key_tiles_write_each_share_once() -> None:
    """T_c = 6: six copies of dQ, each written once and never read by the CTA that wrote it; the last kernel reads all."""
    moves, _ = alone({"N_q": 10, "N_k": 18, "n_s": 6, "B_r": 4, "B_c": 3})
    assert moves["dQs_s"] == (6 * 10 * 4, 6 * 10 * 4)
    assert "dQs" not in moves
    assert moves["dQ"] == (0, 10 * 4)


@pytest.mark.parametrize("n_s", [1, 2, 3])
def test_within_a_part_every_further_key_tile_reads_and_writes_the_copy(n_s: int) -> None:
    """T_c tiles in n_s parts: T_c writes, T_c - n_s reads, and n_s more by the kernel that adds up."""
    moves, _ = alone({"N_q": 10, "N_k": 18, "n_s": n_s, "B_r": 4, "B_c": 3})
    assert moves["dQs_s"] == ((6 - n_s) * 40 + n_s * 40, 6 * 40)


def test_a_ragged_tile_ends_every_part() -> None:
    """18 keys in 3 parts of 6, tiles of 4: two tiles a part."""
    moves, _ = alone({"N_q": 10, "N_k": 18, "n_s": 3, "B_r": 4, "B_c": 4})
    assert moves["dQs_s"][1] == 3 * 2 * 40


@settings(max_examples=15)
@given(numbers=shapes())
def test_one_part_moves_what_keys_outside_move(numbers: dict[str, int]) -> None:
    """flash2-backward with dQ finished by a kernel of its own and not put into memory from the start, tensor by tensor."""
    rules = tuple(rule for rule in plan(PLAIN).schedule if rule is not in_memory.RULE)
    rules = (rules[0], finish_after.RULE, *rules[1:])
    whole = replace(plan(PLAIN), schedule=rules).derive(variant("gqa-backward").graph()).schedule
    parts, plain = (
        counted(derivation("gqa-backward", SPLIT, "full").schedule, {**numbers, "n_s": 1}),
        counted(whole, numbers),
    )
    assert parts.pop("dQs_s") == plain.pop("dQs")
    assert parts == plain


def test_the_first_visit_is_what_memory_from_the_start_would_read_more() -> None:
    """flash2-backward reads zeros of dQ for the first key tile, and finishes it in place: |dQ| less here, 2 n_s |dQ| more."""
    at = "mha-backward N=2048 d=128 h=4 Bc=128"
    plain, parts = ask(at, PLAIN), ask(f"{at} splits=1", SPLIT)
    dq = 4 * 2048 * 128 * 4
    moved = [
        sum(a.exact(x) for x in (m.read, m.write))
        for a, m in ((plain, plain.sm.by_tensor["dQs"]), (parts, parts.sm.by_tensor["dQs_s"]))
    ]
    assert moved == [(16 + 15) * dq, (15 + 16 + 1) * dq]


@pytest.mark.parametrize("n_s", [1, 8])
def test_the_workspace_has_a_copy_of_dq_in_fp32_for_each_part(n_s: int) -> None:
    """n_s N d 4 bytes a head, live while it is summed and added up: 512 MiB at 8 parts of 16 heads of 8,192 x 128."""
    found = ask(f"mha-backward N=8192 d=128 h=16 splits={n_s}", SPLIT)
    (copies,) = (t for t in found.derivation.schedule.graph.tensors.values() if t.name == "dQs_s")
    size = found.exact(copies.size * copies.width)
    assert size == n_s * 16 * 8192 * 128 * 4
    one = ask("mha-backward N=8192 d=128 h=16 splits=1", SPLIT)
    peaks = [a.exact(memory_peak(a.derivation.schedule).amount) for a in (found, one)]
    assert peaks[0] - peaks[1] == (n_s - 1) * 16 * 8192 * 128 * 4


def test_16_heads_at_8192_against_the_other_backward_passes() -> None:
    """Q, K, V and their gradients move alike; of dQ the shares are read and written as often as atomically, less the zeros."""
    asked = "mha-backward N=8192 d=128 h=16 Bc=128 Br=64"
    parts, atomic = ask(f"{asked} splits=8", SPLIT), ask(asked, ATOMIC)
    for name in ("Q", "K", "V", "dO", "dK", "dV", "dQ"):
        one, other = (a.sm.by_tensor[name] for a in (parts, atomic))
        assert (parts.exact(one.read), parts.exact(one.write)) == (atomic.exact(other.read), atomic.exact(other.write))
    dq = 16 * 8192 * 128 * 4
    shares, added = parts.sm.by_tensor["dQs_s"], atomic.sm.by_tensor["dQs"]
    assert [parts.exact(shares.read), parts.exact(shares.write)] == [64 * dq, 64 * dq]
    assert [atomic.exact(added.read), atomic.exact(added.write)] == [65 * dq, 65 * dq]
    assert total(atomic, atomic.sm) - total(parts, parts.sm) == 2 * dq


def test_outputs_stay_where_they_were_in_memory() -> None:
    """G[k, d] is made as G[s, k, d], one axis of as many elements; of the sums only the one for each query is in copies."""
    after = apply_once(RULE, RULE.example()).after
    tensors = after.tensors  # type: ignore[union-attr]
    assert tensors["G"].whole == RULE.example().tensors["G"]
    assert [t for t in tensors if t.endswith("_s")] == ["A_s"]


def test_the_published_count_fills_the_machine_once() -> None:
    """flash_bwd_launch_template.h: ceil(SMs / (batch heads)): 9 for 16 heads on 132 SMs, 1 for 132 or more."""
    assert [deterministic_count(ctas=n, places=132) for n in (16, 131, 132, 200)] == [9, 2, 1, 1]
    costs = splits(ask("mha-backward N=8192 d=128 h=16", SPLIT))
    assert costs is not None
    assert costs.cited == 9
    assert costs.best == ask("mha-backward N=8192 d=128 h=16", SPLIT).values["n_s"]
    assert costs.times[1] > costs.times[costs.best]


def test_what_cannot_be_cut_is_refused_in_a_sentence() -> None:
    """Parts are equal; a list of blocks does not say which part a block is in; a forward pass has nothing to split."""
    with pytest.raises(BadValueError, match="splits=9 does not divide Nk=8192"):
        ask("mha-backward N=8192 splits=9", SPLIT)
    with pytest.raises(PreconditionError, match="schedules a backward pass and this is a forward one"):
        ask("mha N=8192", SPLIT)
    with pytest.raises(PreconditionError, match="not only how many or in which blocks"):
        ask("mha-backward N=8192 mask=block-sparse s=0.5", SPLIT)


@pytest.mark.parametrize(("capacity", "reads"), [(28, 4), (40, 2), (136, 2), (160, 1)])
def test_each_sweep_of_a_head_that_does_not_stay_is_read_again(capacity: int, reads: int) -> None:
    """Two parts of two key tiles: Q and L (48 B) sweep by sweep while a step's tiles stay, 24 B and 16 of both parts' own dQ.

    Below that each CTA reads for itself; with the whole head (96 B) and both copies of dQ (64 B) in the cache, once.
    """
    schedule = derivation("mha-backward", SPLIT, "full").schedule
    numbers = {"B": 1, "h": 1, "h_k": 1, "N_q": 8, "N_k": 8, "d": 2, "d_v": 2, "B_r": 2, "B_c": 2, "n_s": 2}
    at = {**numbers, "C": 2, "C_L2": capacity, "n_L2": 1}
    at |= {str(s): 2 for t in schedule.graph.tensors.values() for s in t.width.free_symbols}
    widths = dict.fromkeys(schedule.graph.tensors, Fraction(2))
    replayed = replay_cache(schedule, at, running=2, capacity=capacity, widths=widths)
    moves = dram(schedule).by_tensor
    assert sum(2 * value(moves[name].read, at) for name in ("Q", "L")) == reads * 48
    assert sum(replayed[name][0] for name in ("Q", "L")) == reads * 48


def test_what_no_tile_cuts_is_read_by_each_part_that_sees_a_key() -> None:
    """A slope a head, 8 queries and 8 keys in 4 parts: read 4 times if causal, twice where top-left queries see 4 keys."""
    numbers = {"B": 1, "h": 1, "h_k": 1, "d": 2, "d_v": 2, "B_r": 2, "B_c": 2, "N_k": 8, "n_s": 4}
    for queries, mask, parts in ((8, "causal", 4), (4, "causal-tl", 2)):
        schedule = derivation("alibi-backward", SPLIT, mask).schedule
        at = {**numbers, "N_q": queries}
        assert counted(schedule, at)["slope"] == walked(schedule, at)["slope"] == (parts, 0)

"""Schedules run tile by tile: the value of the graph where the schedule is legal, another one where it is not."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings

from derive.attention import variant
from derive.errors import IllFormedError
from derive.evaluate import evaluate, random_inputs
from derive.execute import execute
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.operators import Array
from derive.rewrite import apply_once
from derive.schedule import Kernel, Loop, Schedule, lift
from derive.symbols import N_k, N_q, b, d, h
from rules.algebra import online_softmax, split_softmax
from rules.schedule.examples import flash, fused, loop, streaming, three_pass, two_pass
from tests.strategies import derivation, fitted, masks, pairs, shapes

NUMBERS = {"N_q": 7, "N_k": 9, "d": 3, "d_v": 2, "h": 4, "h_k": 2, "B": 2, "B_r": 3, "B_c": 2}
SCALARS = {"c": 0.6, "a": -0.3, "cap": 1.7, "p": 0.4, "lambda": 0.8}


def both(schedule: Schedule, numbers: dict[str, int] | None = None) -> tuple[dict[str, Array], dict[str, Array]]:
    """What the schedule leaves in memory, and what the graph means."""
    numbers = numbers or NUMBERS
    inputs = random_inputs(schedule.graph, numbers, np.random.default_rng(0))
    return execute(schedule, inputs, SCALARS, numbers), evaluate(schedule.graph, inputs, SCALARS, numbers)


def agree(schedule: Schedule, numbers: dict[str, int] | None = None) -> bool:
    """Whether every tensor left in memory has its value, to float64 rounding."""
    found, wanted = both(schedule, numbers)
    assert set(schedule.graph.outputs) <= set(found)
    return all(np.allclose(a, wanted[name], rtol=1e-11, atol=1e-12) for name, a in found.items())


@settings(max_examples=250)
@given(pair=pairs, mask=masks, numbers=shapes())
def test_every_schedule_computes_its_graph(pair: tuple[str, str], mask: str, numbers: dict[str, int]) -> None:
    """All plans, variants and masks, forward and backward; ragged tiles, N_q unlike N_k, d unlike d_v, packed heads."""
    made, numbers = derivation(*pair, mask), fitted(pair[0], numbers)
    inputs = random_inputs(made.start, numbers, np.random.default_rng(0))
    found, wanted = execute(made.schedule, inputs, SCALARS, numbers), evaluate(made.start, inputs, SCALARS, numbers)
    for output in made.start.outputs:
        np.testing.assert_allclose(found[output], wanted[output], rtol=1e-10, atol=1e-11, err_msg=output)


@pytest.mark.parametrize("graph", [two_pass, three_pass])
def test_tiling_an_index_that_needs_two_passes_gives_wrong_numbers(graph: object) -> None:
    """The running maximum is not the final one, so sums that are not rescaled come out wrong; nothing raises."""
    made: Graph = graph()  # type: ignore[operator]
    found, wanted = both(fused(made, loop(made, "q", grid=True), loop(made, "k")))
    assert np.isfinite(found["O"]).all()
    assert not np.allclose(found["O"], wanted["O"], rtol=1e-3)


def test_online_softmax_without_the_deferred_division_gives_wrong_numbers() -> None:
    """P = E / l divides by the sum so far."""
    graph = online_softmax.rewrite(three_pass(), next(online_softmax.RULE.shape(three_pass())))
    assert not agree(fused(graph, loop(graph, "q", grid=True), loop(graph, "k")))


def test_one_key_tile_makes_two_passes_right() -> None:
    """With all of k in one tile the running maximum is the final one."""
    graph = two_pass()
    schedule = fused(graph, loop(graph, "q", grid=True), loop(graph, "k"))
    assert agree(schedule, {**NUMBERS, "B_c": NUMBERS["N_k"]})


@pytest.mark.parametrize("mask", ["full", "causal", "causal-tl"])
@pytest.mark.parametrize("order", ["qk", "kq"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_partial_sums_survive_leaving_the_sm(order: str, mask: str, in_memory: bool) -> None:
    """Whichever loop is outside, O, l and m come out the same, whole tiles masked or not."""
    graph = streaming(mask)
    schedule = fused(graph, *(loop(graph, name) for name in order))
    kernel = schedule.kernels[0].with_(in_memory=in_memory, skips_masked=mask != "full")
    assert agree(Schedule(Graph(graph.einsums, ("O", "l", "m")), (kernel,)))


def test_sums_that_wait_for_an_inner_sum_run_when_it_is_complete() -> None:
    """With d tiled inside k, the maximum waits for the whole of each score."""
    graph = streaming("causal")
    tiled = Loop((graph.indices["d"],), sp.Integer(2))
    assert agree(fused(graph, loop(graph, "q"), loop(graph, "k"), tiled))
    assert agree(fused(graph, tiled, loop(graph, "k"), loop(graph, "q")))


def test_a_loop_that_an_accumulator_does_not_run_over_does_not_add_to_it() -> None:
    """With e tiled innermost, l and m see each key tile once, and U is rescaled in every tile of e."""
    graph = streaming()
    for order in ("qke", "qek", "ekq"):
        assert agree(fused(graph, *(loop(graph, name) for name in order))), order


def test_queries_without_keys_get_zeros() -> None:
    """5 queries on 2 keys: the tile of the first 3 is never visited, and its O is still written."""
    found, _ = both(flash("causal"), {**NUMBERS, "N_q": 5, "N_k": 2})
    assert (found["O"][:, :, :3] == 0).all()
    skipping = flash("causal").kernels[0].with_(skips_masked=True)
    found, _ = both(Schedule(streaming("causal"), (skipping,)), {**NUMBERS, "N_q": 5, "N_k": 2})
    assert (found["O"][:, :, :3] == 0).all()


def test_rising_scores_do_not_overflow() -> None:
    """Scores of 2000 and more: exp of an unshifted one is infinite, the running shift keeps all terms below 1."""
    graph = streaming()
    numbers = {**NUMBERS, "N_q": 1, "N_k": 4, "d": 1, "h": 1, "B": 1, "B_c": 1}
    inputs = {"Q": np.ones((1, 1, 1, 1)), "V": np.ones((1, 1, 4, 2)), "K": np.arange(4.0).reshape(1, 1, 4, 1) * 2000}
    found = execute(fused(graph, loop(graph, "k")), inputs, {"c": 1.0}, numbers)
    assert found["O"].tolist() == [[[[1, 1]]]]


def test_skipping_tiles_that_hold_unmasked_work_gives_wrong_numbers() -> None:
    """V_sum[q] adds all of V whatever the mask; what stands in skipped tiles is missing."""
    mask = causal(N_q, N_k)
    text = "y[q] = sum[k] A[q,k] * x[k]"
    extents = {"q": N_q, "k": N_k}
    masked = cascade("z[q] = sum[k] A[q,k] * x[k]", extents, outputs=("z",), width=b, mask=mask)
    plain = cascade(text, extents, outputs=("y",), width=b)
    graph = Graph((*masked.einsums, *plain.einsums), ("y", "z"))
    loops = (loop(graph, "q", grid=True), loop(graph, "k"))
    assert agree(Schedule(graph, (Kernel(("z", "y"), loops),)))
    found, wanted = both(Schedule(graph, (Kernel(("z", "y"), loops, skips_masked=True),)))
    assert np.allclose(found["z"], wanted["z"])
    assert not np.allclose(found["y"], wanted["y"])


def test_scores_of_skipped_tiles_are_never_written() -> None:
    """A tile that the mask empties is left as it was: nothing has stored there."""
    graph = Graph(streaming("causal").einsums, ("S", "O"))
    loops = (loop(graph, "q", grid=True), loop(graph, "k"))
    kernel = Kernel(tuple(e.output.name for e in graph.einsums), loops, skips_masked=True)
    found, wanted = both(Schedule(graph, (kernel,)))
    assert np.isnan(found["S"]).any()
    assert np.allclose(found["O"], wanted["O"])


def test_a_sum_spread_over_ctas_is_refused() -> None:
    """Each CTA would reduce its own tile of q and store it; the last one would win."""
    graph = cascade("y[k] = sum[q] A[q,k]", {"q": N_q, "k": N_k}, outputs=("y",), width=b)
    with pytest.raises(IllFormedError, match="y does not carry the grid loop grid q by B_r"):
        fused(graph, loop(graph, "q", grid=True))
    assert agree(fused(graph, loop(graph, "q")))


def test_a_maximum_over_heads_is_refused_with_a_cta_a_head() -> None:
    """The maximum runs over h; a CTA that has one head would take its own score for the maximum."""
    text = """
        m[q] = max[h] S[h,q]
        X[h,q] = S[h,q] - m[q]
    """
    graph = cascade(text, {"h": h, "q": N_q}, outputs=("X",), width=b)
    with pytest.raises(IllFormedError, match="m does not carry the grid loop grid h by 1"):
        fused(graph, loop(graph, "h", grid=True))
    assert agree(lift(graph))


def test_intermediates_of_several_kernels_are_left_in_memory() -> None:
    """Op by op, every tensor is there afterwards with its value."""
    schedule = lift(apply_once(split_softmax.RULE, variant("mha").graph("causal")).after)  # type: ignore[arg-type]
    found, wanted = both(schedule)
    assert set(found) == set(wanted)
    assert agree(schedule)


def test_a_transposed_tensor_may_be_flattened() -> None:
    """Rows (q, h), though A stores h outside q: y comes out in its own order."""
    extents = {"q": N_q, "h": h, "d": d}
    graph = cascade("y[h,q] = sum[d] A[h,q,d] * W[d,q,h]", extents, outputs=("y",), width=b)
    rows = Loop((graph.indices["q"], graph.indices["h"]), sp.Integer(3), grid=True)
    assert agree(fused(graph, rows))


def test_extra_readers_of_a_complete_sum_are_right() -> None:
    """A log-sum-exp beside O would read l and m after the last key tile: here their sum."""
    graph = streaming()
    low = graph.tensors["l"]
    extra = cascade(
        "z[b,h,q] = l[b,h,q] + m[b,h,q]", {i.name: i.extent for i in low.indices}, outputs=("z",), width=low.width
    )
    both_outputs = Graph((*graph.einsums, *extra.einsums), ("O", "z"))
    assert agree(fused(both_outputs, loop(both_outputs, "q"), loop(both_outputs, "k")))

"""Tiling: a tile of fast memory instead of a whole extent."""

from derive.footprint import tile_size
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import B, B_c, B_r, N_k, N_q, d, h
from rules.schedule.examples import backward_streaming, fused, loop, streaming, two_pass
from rules.schedule.tile import KEYS, QUERIES, SHARED_HEADS, kernel_graph


def test_a_tensor_needs_a_tile_of_the_index_it_carries() -> None:
    """Q: N_q rows become B_r; K: N_k become B_c; neither touches the other's."""
    schedule = fused(streaming())
    q, k = schedule.graph.tensors["Q"], schedule.graph.tensors["K"]
    by_queries = apply_once(QUERIES, schedule).after
    assert isinstance(by_queries, Schedule)
    assert tile_size(by_queries.kernels[0], q) == B * h * B_r * d
    assert tile_size(by_queries.kernels[0], k) == B * h * N_k * d
    both = apply_once(KEYS, by_queries).after
    assert isinstance(both, Schedule)
    assert tile_size(both.kernels[0], k) == B * h * B_c * d
    assert tile_size(schedule.kernels[0], q) == B * h * N_q * d


def test_queries_may_be_tiled_whatever_the_keys_need() -> None:
    """Two passes over k are one over q."""
    assert list(QUERIES.matches(fused(two_pass())))
    assert not list(KEYS.matches(fused(two_pass())))


def test_a_new_loop_is_the_innermost_and_sequential() -> None:
    """Order is interchange's affair."""
    both = apply_once(KEYS, apply_once(QUERIES, fused(streaming())).after).after
    assert [(x.indices[0].name, x.grid) for x in both.kernels[0].loops] == [("q", False), ("k", False)]  # type: ignore[union-attr]


def test_heads_whose_gradients_are_summed_run_in_turn() -> None:
    """A group's r query heads, inside the keys: dK of a key tile stays while they run; separate heads need no loop."""
    grouped = apply_once(SHARED_HEADS, SHARED_HEADS.example()).after
    assert [(x.indices[0].name, x.tile, x.grid) for x in grouped.kernels[0].loops] == [  # type: ignore[union-attr]
        ("k", B_c, False),
        ("r", 1, False),
    ]
    graph = backward_streaming()
    assert not list(SHARED_HEADS.shape(fused(graph, loop(graph, "k"))))


def test_a_kernel_as_a_graph_leaves_what_others_read() -> None:
    """Its outputs are the kernel's."""
    schedule = fused(streaming())
    assert kernel_graph(schedule, schedule.kernels[0]).outputs == ("O",)

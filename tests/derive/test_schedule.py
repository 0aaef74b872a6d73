"""Kernels and loops: what is carried, what leaves, and which schedules have no meaning."""

import pytest
import sympy as sp

from derive.errors import IllFormedError
from derive.graph import Graph
from derive.schedule import Kernel, Loop, Schedule, lift
from derive.symbols import B, B_r, N_q, h
from rules.schedule.examples import flash, fused, loop, streaming, three_pass

GRAPH = three_pass()
NAMES = tuple(e.output.name for e in GRAPH.einsums)
ROWS = Loop((GRAPH.indices["q"],), B_r)


def test_a_loop_has_a_trip_a_tile() -> None:
    """ceil(N_q / B_r); tiles of one row need no rounding, and flattened indices multiply."""
    assert ROWS.trips == sp.ceiling(N_q / B_r)
    assert Loop((GRAPH.indices["q"],), sp.Integer(1)).trips == N_q
    assert Loop((GRAPH.indices["h"], GRAPH.indices["q"]), B_r).extent == h * N_q


def test_a_tensor_moves_with_the_loops_over_its_indices() -> None:
    """Q with the queries, K not."""
    assert ROWS.carried_by(GRAPH.tensors["Q"])
    assert not ROWS.carried_by(GRAPH.tensors["K"])


def test_lifting_gives_each_node_a_kernel() -> None:
    """Every intermediate is written and read."""
    schedule = lift(GRAPH)
    assert [k.einsums for k in schedule.kernels] == [(name,) for name in NAMES]
    assert [t.name for k in schedule.kernels for t in schedule.outputs_of(k)] == list(NAMES)


def test_one_kernel_keeps_its_intermediates() -> None:
    """It reads the inputs and leaves O."""
    schedule = fused(GRAPH)
    kernel = schedule.kernels[0]
    assert {t.name for t in schedule.inputs_of(kernel)} == {"Q", "K", "V"}
    assert [t.name for t in schedule.outputs_of(kernel)] == ["O"]
    assert {t.name for t in schedule.internals_of(kernel)} == set(NAMES) - {"O"}


def test_an_output_that_is_also_read_inside_leaves_all_the_same() -> None:
    """S is wanted in memory."""
    schedule = fused(Graph(GRAPH.einsums, ("S", "O")))
    assert {t.name for t in schedule.outputs_of(schedule.kernels[0])} == {"S", "O"}


def test_grid_and_sequential_loops_are_told_apart() -> None:
    """flash2: B h ceil(N_q / B_r) CTAs that each run over k."""
    kernel = flash().kernels[0]
    assert kernel.ctas == B * h * sp.ceiling(N_q / B_r)
    assert [x.indices[0].name for x in kernel.sequential] == ["k"]
    assert kernel.loop_of("q") is kernel.grid[2]
    assert kernel.loop_of("d") is None


def test_a_schedule_prints_its_kernels_and_nests() -> None:
    """One line a kernel."""
    assert str(lift(GRAPH)).splitlines()[0] == "kernel Qs: whole operands"
    assert str(flash()) == "kernel Qs..O: grid b by 1, grid h by 1, grid q by B_r, for k by B_c"


def test_a_replaced_run_stands_where_its_first_kernel_stood() -> None:
    """S and m become one kernel, second in order."""
    schedule = lift(GRAPH)
    merged = schedule.replace(schedule.kernels[1:3], Kernel(("S", "m")))
    assert [k.name for k in merged.kernels[:3]] == ["Qs", "S..m", "X"]


def test_grid_loops_stand_outside() -> None:
    """A CTA cannot launch others."""
    graph = streaming()
    with pytest.raises(IllFormedError, match="grid loops come before sequential ones; got for k by B_c, grid q by B_r"):
        fused(graph, loop(graph, "k"), loop(graph, "q", grid=True))


def test_an_index_has_one_loop() -> None:
    """Two would tile a tile."""
    with pytest.raises(IllFormedError, match="index q has two loops; merge them into one"):
        Kernel(NAMES, (ROWS, ROWS))


def test_every_node_is_in_one_kernel() -> None:
    """None is forgotten, none run twice."""
    with pytest.raises(IllFormedError, match=r"the graph needs each of .* exactly once"):
        Schedule(GRAPH, (Kernel(NAMES[:-1]),))
    with pytest.raises(IllFormedError, match=r"the graph needs each of .* exactly once"):
        Schedule(GRAPH, (Kernel(NAMES), Kernel(("O",))))


def test_kernels_stand_in_the_order_of_what_they_read() -> None:
    """O before P has nothing to read."""
    with pytest.raises(IllFormedError, match="kernel O reads P before it is written"):
        Schedule(GRAPH, (Kernel(NAMES[:-2]), Kernel(("O",)), Kernel(("P",))))


def test_a_flattened_loop_is_carried_whole_or_not_at_all() -> None:
    """K carries the head and no query, so rows of (query, head) pairs do not cut it."""
    rows = Loop((GRAPH.indices["q"], GRAPH.indices["h"]), B_r)
    with pytest.raises(IllFormedError, match="carries only part of the loop for q x h by B_r"):
        fused(GRAPH, rows)

"""Running along a recurrence: a tile of steps in fast memory, the state kept."""

import pytest
import sympy as sp

from derive.errors import IllFormedError
from derive.exact import value
from derive.footprint import tile_size
from derive.rewrite import apply_once
from derive.schedule import Loop, Schedule
from derive.symbols import B_r
from derive.traffic import traffic
from rules.schedule.examples import fused, loop, recurrence
from rules.schedule.steps import ONE, ROWS
from tests.rules.meaning import RAGGED, computes_its_graph


def test_a_state_that_stays_moves_nothing() -> None:
    """Q, K, V read once, O written once; neither the state nor what is added to it crosses."""
    after = apply_once(ONE, ONE.example()).after
    assert isinstance(after, Schedule)
    assert set(traffic(after).by_tensor) == {"Q", "K", "V", "O"}
    assert traffic(after).total.amount == sum(after.graph.tensors[name].size for name in "QKVO")


def test_a_trip_holds_the_rows_of_its_steps() -> None:
    """B_r rows of K, d each."""
    after = apply_once(ROWS, ROWS.example()).after
    assert isinstance(after, Schedule)
    (kernel,) = after.kernels
    assert tile_size(kernel, after.graph.tensors["K"]).has(B_r)


def test_a_loop_that_cuts_the_state_inside_the_steps_sends_it_to_memory() -> None:
    """d_v in columns inside 5 steps: between two steps the state goes and comes back; outside, it stays."""
    graph = recurrence()
    columns = Loop((graph.indices["e"],), sp.Integer(1))
    inside = fused(graph, loop(graph, "q"), columns)
    outside = fused(graph, columns, loop(graph, "q"))
    state = RAGGED["B"] * RAGGED["h"] * RAGGED["d"] * RAGGED["d_v"]
    trips = -(-RAGGED["N_q"] // RAGGED["B_r"])
    moved = traffic(inside).by_tensor["H"]
    assert value(moved.read, RAGGED) == value(moved.write, RAGGED) == state * (trips - 1)
    assert "H" not in traffic(outside).by_tensor
    assert computes_its_graph(inside, RAGGED)
    assert computes_its_graph(outside, RAGGED)


def test_steps_are_no_grid() -> None:
    """A CTA a step would not find the state."""
    graph = recurrence()
    with pytest.raises(
        IllFormedError, match="its recurrence runs along q in order, one sequential loop; got grid q by B_r"
    ):
        fused(graph, loop(graph, "q", grid=True))

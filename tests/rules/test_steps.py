"""Running along a recurrence: a tile of steps in fast memory, the state kept."""

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.errors import IllFormedError
from derive.exact import value
from derive.footprint import tile_size
from derive.replay import walk
from derive.rewrite import apply_once
from derive.schedule import Loop, Schedule
from derive.symbols import B_r
from derive.traffic import traffic
from rules.schedule.examples import fused, loop, recurrence
from rules.schedule.steps import ONE, ROWS
from tests.rules.meaning import RAGGED, computes_its_graph
from tests.strategies import shapes


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


@settings(max_examples=40)
@given(
    order=st.permutations(["h", "q", "e", "d"]),
    grid=st.booleans(),
    in_memory=st.booleans(),
    numbers=shapes(),
    cuts=st.fixed_dictionaries({"h": st.integers(1, 3), "e": st.integers(1, 3), "d": st.integers(1, 3)}),
)
def test_a_state_moves_as_the_walker_sees_it_in_any_nest(
    order: list[str], grid: bool, in_memory: bool, numbers: dict[str, int], cuts: dict[str, int]
) -> None:
    """Heads, columns and rows of the state outside or inside the steps, ragged; and the values are right in all of them."""
    graph = recurrence()
    loops = [loop(graph, "q") if n == "q" else Loop((graph.indices[n],), sp.Integer(cuts[n])) for n in order]
    loops = [*([loop(graph, "b", grid=True)] if grid else []), *loops]
    schedule = fused(graph, *loops)
    (kernel,) = schedule.kernels
    schedule = Schedule(graph, (kernel.with_(in_memory=in_memory),))
    moved = traffic(schedule).by_tensor.get("H")
    found = (0, 0) if moved is None else (value(moved.read, numbers), value(moved.write, numbers))
    assert found == walk(schedule, numbers).moves["H"]
    assert computes_its_graph(schedule, numbers)

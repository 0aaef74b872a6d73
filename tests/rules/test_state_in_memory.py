"""A state in memory: read before every trip, written after it."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.exact import value
from derive.footprint import memory_peak
from derive.lru import replay_cache
from derive.residency import dram
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.traffic import traffic
from rules.derivations import plan
from rules.schedule.examples import recurrence
from rules.schedule.state_in_memory import RULE
from tests.rules.meaning import RAGGED
from tests.strategies import shapes


@pytest.mark.parametrize("steps", [1, 2, 5, 9])
def test_every_trip_reads_and_writes_the_state(steps: int) -> None:
    """ceil(N_q / B_r) states each way, a ragged last trip included; the first is read too."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Schedule)
    numbers = {**RAGGED, "B_r": steps}
    state = RAGGED["B"] * RAGGED["h"] * RAGGED["d"] * RAGGED["d_v"]
    moved = traffic(after).by_tensor["H"]
    assert value(moved.read, numbers) == value(moved.write, numbers) == state * -(-RAGGED["N_q"] // steps)


def test_memory_holds_one_state_a_head() -> None:
    """Beside inputs and outputs: d d_v for each sequence and head."""
    step = apply_once(RULE, RULE.example())
    before, after = (memory_peak(s).amount for s in (step.before, step.after))  # type: ignore[arg-type]
    heads = RAGGED["B"] * RAGGED["h"]
    at = {**RAGGED, "b": 2, "b_kv": 2, "b_h": 4}
    assert value(after, at) - value(before, at) == 4 * heads * RAGGED["d"] * RAGGED["d_v"]


@settings(max_examples=60)
@given(numbers=shapes(), running=st.integers(1, 6), capacity=st.integers(1, 200))
def test_a_state_that_fits_the_cache_crosses_hbm_once_each_way(
    numbers: dict[str, int], running: int, capacity: int
) -> None:
    """Against an LRU cache: as much where the states of the running CTAs fit, no more where they do not."""
    kept = plan("recurrent").derive(recurrence()).schedule
    widths = dict.fromkeys(kept.graph.tensors, Fraction(2))
    at = {**numbers, "C": running, "C_L2": capacity, "b": 2, "b_kv": 2, "b_h": 2}
    found = replay_cache(kept, at, running=running, capacity=capacity, widths=widths)["H"]
    formula = dram(kept).by_tensor["H"]
    wanted = (2 * value(formula.read, at), 2 * value(formula.write, at))
    heads = numbers["B"] * numbers["h"]
    state = 2 * numbers["d"] * numbers["d_v"]
    if min(running, heads) * state <= capacity:
        assert found == wanted == (heads * state, heads * state)
    else:
        assert found[0] <= wanted[0]
        assert found[1] <= wanted[1]

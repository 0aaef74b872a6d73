"""A state in memory: read before every trip, written after it."""

import pytest

from derive.exact import value
from derive.footprint import memory_peak
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.traffic import traffic
from rules.schedule.state_in_memory import RULE
from tests.rules.meaning import RAGGED


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

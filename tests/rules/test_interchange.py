"""Loop order: which tensors stay and which are read again."""

import pytest

from derive.exact import value
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.traffic import traffic
from rules.schedule.examples import flash, fused, loop, streaming
from rules.schedule.interchange import KEYS_OUTSIDE, QUERIES_OUTSIDE_HEADS
from tests.rules.meaning import RAGGED, counted, walked

T_R, T_C = 3, 3
"""Query and key tiles in ``RAGGED``."""
HEADS = RAGGED["B"] * RAGGED["h"]


def reads(schedule: object) -> dict[str, int]:
    """Elements read of Q, K and O's partial sum."""
    assert isinstance(schedule, Schedule)
    moves = traffic(schedule).by_tensor
    return {name: int(value(moves[name].read, RAGGED)) for name in ("Q", "K", "U_O") if name in moves}


def test_queries_outside_read_keys_again_and_keys_outside_read_queries_again() -> None:
    """flash2's order: Q once, K T_r times. flash1's: K once, Q T_c times, U back at each visit but the first."""
    step = apply_once(KEYS_OUTSIDE, KEYS_OUTSIDE.example())
    q, k, u = HEADS * 5 * 2, HEADS * 7 * 2, HEADS * 5 * 3
    assert reads(step.before) == {"Q": q, "K": T_R * k}
    assert reads(step.after) == {"Q": T_C * q, "K": k, "U_O": (T_C - 1) * u}


def test_the_grid_order_changes_nothing_that_the_sms_see() -> None:
    """Every CTA does what it did."""
    step = apply_once(QUERIES_OUTSIDE_HEADS, flash())
    assert counted(step.before, RAGGED) == counted(step.after, RAGGED)  # type: ignore[arg-type]
    assert [x.indices[0].name for x in step.after.kernels[0].grid] == ["q", "b", "h"]  # type: ignore[union-attr]


@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("inner", ["b", "h"])
def test_a_tensor_that_two_inner_loops_carry_leaves_when_either_has_several_trips(inner: str, queries: int) -> None:
    """Keys outside, then queries, then heads: with one query tile it is the heads that drive the partial sums out."""
    graph = streaming()
    schedule = fused(graph, loop(graph, "k"), loop(graph, "q"), loop(graph, inner))
    numbers = {**RAGGED, "N_q": queries}
    assert counted(schedule, numbers) == walked(schedule, numbers)

"""Finishing whole sums apart: two kernels of the same Einsums, and a sum that crosses memory once more each way."""

import sympy as sp

from derive.exact import value
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.traffic import traffic
from rules.schedule.finish_after import RULE
from tests.rules.meaning import RAGGED, computes_its_graph, counted, walked


def finished() -> tuple[Schedule, Schedule]:
    """A backward pass in one kernel, and with what waits for dQ's sum apart."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Schedule)
    return RULE.example(), after


def test_the_same_einsums_in_two_kernels() -> None:
    """None is lost and none is made twice; what was last comes last."""
    before, after = finished()
    first, second = after.kernels
    assert {*first.einsums, *second.einsums} == set(before.kernels[0].einsums)
    assert not {*first.einsums} & {*second.einsums}
    assert "dQ" in second.einsums


def test_the_sum_crosses_memory_once_more_each_way() -> None:
    """And nothing else does: the sum is as large as dQ."""
    before, after = finished()
    (crossing,) = (t for t in after.inputs_of(after.kernels[1]) if t in after.outputs_of(after.kernels[0]))
    moved = traffic(after).by_tensor[crossing.name]
    assert sp.expand(moved.read - crossing.size) == sp.expand(moved.write - crossing.size) == 0
    more = value(traffic(after).total.amount - traffic(before).total.amount, RAGGED)
    assert more == 2 * value(crossing.size, RAGGED)


def test_both_compute_the_same_and_the_walker_agrees() -> None:
    """Values and counts at ragged sizes."""
    for schedule in finished():
        assert counted(schedule, RAGGED) == walked(schedule, RAGGED)
        assert computes_its_graph(schedule, RAGGED)

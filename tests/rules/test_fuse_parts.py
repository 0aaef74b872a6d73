"""A kernel for the parts and one for their merge."""

from derive.rewrite import apply_once
from derive.schedule import Schedule, lift
from derive.symbols import N_k, N_q, n_s
from derive.traffic import traffic
from rules.schedule.fuse_parts import RULE, waits_for_parts


def test_only_partial_results_cross_memory() -> None:
    """E stays within the part; l_s is written once and read once."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Schedule)
    assert isinstance(step.after, Schedule)
    before, after = traffic(step.before).by_tensor, traffic(step.after).by_tensor
    assert before["E"].read == N_q * N_k
    assert "E" not in after
    assert (after["l_s"].write, after["l_s"].read) == (N_q * n_s, N_q * n_s)
    assert [k.name for k in step.after.kernels] == ["E..l_s", "l"]


def test_what_waits_for_parts_is_what_reduces_them_and_its_readers() -> None:
    """At any remove."""
    schedule = RULE.example()
    assert waits_for_parts(schedule.graph) == {"l"}
    assert lift(schedule.graph) == schedule

"""A kernel for each lot of keys and one for their merge."""

from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import N_p, N_q
from derive.traffic import traffic
from rules.schedule.fuse_streams import RULE, streams


def test_scores_stay_within_their_stream() -> None:
    """Y, written and read op by op, is gone; what each stream leaves is read by the merge."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Schedule)
    assert isinstance(step.after, Schedule)
    before, after = traffic(step.before).by_tensor, traffic(step.after).by_tensor
    assert before["Y"].read == N_q * N_p
    assert "Y" not in after
    assert (after["x"].write, after["x"].read) == (N_q, N_q)


def test_a_stream_is_what_runs_over_its_keys() -> None:
    """And what only that reads; the merge belongs to none."""
    assert streams(RULE.example().graph) == {"p": {"Y", "x"}, "k": {"Z", "z"}}

"""Two kernels, one that writes the states and one that reads them."""

from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import N_q, d, d_v
from derive.traffic import traffic
from rules.schedule.split_at_states import RULE


def test_the_state_of_every_step_is_written_and_read_once() -> None:
    """N_q states of d x d_v each way; what is added to them, and what they become, stay inside."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Schedule)
    assert [k.einsums for k in after.kernels] == [("X", "H", "J"), ("O",)]
    moved = traffic(after).by_tensor
    assert (moved["H"].read, moved["H"].write) == (N_q * d * d_v, N_q * d * d_v)
    assert not {"X", "J"} & set(moved)


def test_two_kernels_that_stand_so_already_are_left() -> None:
    """There is nothing to do."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Schedule)
    assert not list(RULE.shape(after))

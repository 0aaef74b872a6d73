"""A CTA a sequence; a CTA a step where no state is handed on."""

from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import B, N_q, h
from rules.schedule import split_at_states
from rules.schedule.launch_sequences import RULE


def test_steps_stay_in_order_where_a_state_is_handed_on() -> None:
    """B h CTAs, each with all steps."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Schedule)
    (kernel,) = after.kernels
    assert kernel.ctas == B * h
    assert [x.indices[0].name for x in kernel.sequential] == ["q"]


def test_steps_are_ctas_where_states_are_only_read() -> None:
    """The second of two kernels runs all steps at once, the first none."""
    split = apply_once(split_at_states.RULE, split_at_states.RULE.example()).after
    assert isinstance(split, Schedule)
    (match,) = RULE.matches(split)
    after = RULE.rewrite(split, match)
    assert [kernel.ctas for kernel in after.kernels] == [1, N_q]

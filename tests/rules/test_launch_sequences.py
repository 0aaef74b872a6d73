"""A CTA a sequence; a CTA a step where no state is handed on."""

from derive.notation import cascade
from derive.rewrite import apply_once
from derive.schedule import Kernel, Schedule
from derive.symbols import B, N_q, b, d, h
from rules.schedule import split_at_states
from rules.schedule.examples import loop
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


def test_a_kernel_without_steps_is_passed_over() -> None:
    """What is made of a weight beforehand has no step; the recurrence behind it is launched all the same."""
    text = """
        w[d]     = exp(v[d])
        H[h,q,d] = previous[q] J[h,q,d]
        J[h,q,d] = H[h,q,d] + x[h,q,d]
        y[h,q,d] = J[h,q,d] * w[d]
    """
    graph = cascade(text, {"h": h, "q": N_q, "d": d}, outputs=("y",), width=b)
    schedule = Schedule(graph, (Kernel(("w",)), Kernel(("H", "J", "y"), (loop(graph, "q"),))))
    ((kernel, indices),) = RULE.matches(schedule)
    assert (kernel.name, [i.name for i in indices]) == ("H..y", ["h"])

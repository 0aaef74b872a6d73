"""Partial results in memory: read at every visit, the first included."""

from derive.exact import value
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.traffic import traffic
from rules.schedule.examples import flash, fused, loop, streaming
from rules.schedule.in_memory import RULE
from tests.rules.meaning import RAGGED, counted

T_C = 3
"""Key tiles in ``RAGGED``."""


def test_the_first_visit_reads_too() -> None:
    """|T| f reads instead of |T| (f - 1), and the last visit of m and l is written though nobody reads it."""
    step = apply_once(RULE, RULE.example())
    rows = RAGGED["B"] * RAGGED["h"] * RAGGED["N_q"]
    for name, size in (("m", rows), ("l", rows), ("U_O", rows * RAGGED["d_v"])):
        before, after = (traffic(s).by_tensor[name] for s in (step.before, step.after))  # type: ignore[arg-type]
        assert value(before.read, RAGGED) == size * (T_C - 1)
        assert value(after.read, RAGGED) == size * T_C


def test_the_last_write_of_u_is_that_of_o() -> None:
    """O takes U's place: |U| (f - 1) writes and |O|; m and l are written f times."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Schedule)
    found, rows = counted(after, RAGGED), RAGGED["B"] * RAGGED["h"] * RAGGED["N_q"]
    assert found["U_O"][1] == rows * RAGGED["d_v"] * (T_C - 1)
    assert found["O"] == (0, rows * RAGGED["d_v"])
    assert found["m"][1] == found["l"][1] == rows * T_C


def test_inputs_move_as_before() -> None:
    """Q, K and V do not care where partial results live."""
    step = apply_once(RULE, RULE.example())
    before, after = (counted(s, RAGGED) for s in (step.before, step.after))  # type: ignore[arg-type]
    assert all(before[name] == after[name] for name in ("Q", "K", "V"))


def test_a_kernel_without_a_sequential_reduction_has_no_partial_results() -> None:
    """A loop over q reduces nothing."""
    graph = streaming()
    assert not list(RULE.shape(fused(graph, loop(graph, "q"))))
    assert list(RULE.shape(flash()))

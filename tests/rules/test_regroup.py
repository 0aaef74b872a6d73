"""Row sums of the gradient with dropout, taken from the output."""

from derive.attention import variant
from derive.rewrite import Step
from rules.derivations import plan


def test_dropout_s_row_sum_is_of_the_output() -> None:
    """D = sum_e dO O, before any key is run over: the mask of the dropout is in O already."""
    made = plan("flash2-backward").derive(variant("dropout-backward").graph("causal"))
    names = [step.rule.name for step in made.steps if isinstance(step, Step)]
    assert names.index("regroup") < names.index("row-sum")
    total = next(e for e in made.schedule.graph.einsums if {t.name for t in e.inputs} == {"dO", "O"})
    assert [i.name for i in total.output.indices] == ["b", "h", "q"]
    assert made.schedule.kernels[0].einsums == (total.output.name,)
    assert "D" not in {t.name for t in made.schedule.graph.inputs}  # the mask is made again, not read

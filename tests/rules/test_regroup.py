"""Row sums of the gradient with dropout, taken from the output."""

from dataclasses import replace

from derive.attention import variant
from derive.graph import Graph
from derive.rewrite import Step
from rules.algebra.regroup import RULE
from rules.derivations import plan


def test_the_factors_of_the_product_may_stand_either_way() -> None:
    """DP = G M and dP = M G are one product: the gradient is the factor that is contracted."""
    graph = RULE.example()
    assert isinstance(graph, Graph)
    turned = replace(
        graph, einsums=tuple(replace(e, inputs=e.inputs[::-1]) if e.output.name == "dP" else e for e in graph.einsums)
    )
    for written in (graph, turned):
        assert [(e.output.name, g.name, y.output.name) for e, g, y in RULE.shape(written)] == [("D", "G", "Y")]


def test_dropout_s_row_sum_is_of_the_output() -> None:
    """D = sum_e dO O, before any key is run over: the mask of the dropout is in O already."""
    made = plan("flash2-backward").derive(variant("dropout-backward").graph("causal"))
    names = [step.rule.name for step in made.steps if isinstance(step, Step)]
    assert names.index("regroup") < names.index("row-sum")
    total = next(e for e in made.schedule.graph.einsums if {t.name for t in e.inputs} == {"dO", "O"})
    assert [i.name for i in total.output.indices] == ["b", "h", "q"]
    assert made.schedule.kernels[0].einsums == (total.output.name,)
    assert "D" not in {t.name for t in made.schedule.graph.inputs}  # the mask is made again, not read

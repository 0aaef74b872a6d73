"""The row sum from the output: cheaper, and known before the keys."""

from derive.attention import variant
from derive.differentiate import differentiate
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.passes import passes
from derive.rewrite import apply_once
from derive.symbols import N_k, N_q, d_v
from rules.algebra import split_softmax_gradient
from rules.algebra.row_sum import RULE


def test_a_product_a_pair_becomes_one_an_element_of_the_output() -> None:
    """2 N_q N_k vector operations become 2 N_q d_v."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    before, after = (flops(graph)[Pipe.VECTOR].amount for graph in (step.before, step.after))
    assert (before - after).equals(2 * N_q * N_k - 2 * N_q * d_v)


def test_one_pass_over_the_keys_is_enough() -> None:
    """Two before: D was complete only after the first; O is read for it."""
    before = apply_once(split_softmax_gradient.RULE, differentiate(variant("gqa").graph("causal"))).after
    assert isinstance(before, Graph)
    after = apply_once(RULE, before).after
    assert isinstance(after, Graph)
    assert (passes(before, "k"), passes(after, "k")) == (2, 1)
    assert "O" not in {t.name for t in before.inputs}
    assert "O" in {t.name for t in after.inputs}
    assert after.einsums[0].output.name == "D"

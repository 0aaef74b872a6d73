"""Opening the softmax's gradient: what was opaque can be counted and fused."""

import pytest

from derive.einsum import Map, Reduce
from derive.errors import IllFormedError
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.passes import passes
from derive.rewrite import apply_once
from derive.symbols import N_k, N_q
from rules.algebra.split_softmax_gradient import RULE


def test_a_row_sum_a_difference_and_a_product_come_out() -> None:
    """4 vector operations a score and no matrix product; before, counting refuses."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    assert [(e.map, e.reduce) for e in step.after.einsums] == [
        (Map.MUL, Reduce.SUM),
        (Map.SUB, None),
        (Map.MUL, None),
    ]
    with pytest.raises(
        IllFormedError, match="softmax_gradient is opaque to counting; apply split-softmax-gradient first"
    ):
        flops(step.before)
    assert flops(step.after)[Pipe.VECTOR].amount == 4 * N_q * N_k
    assert flops(step.after)[Pipe.MMA].amount == 0


def test_it_needs_two_passes() -> None:
    """The row sum is complete only after the first."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Graph)
    assert passes(after, "k") == 2

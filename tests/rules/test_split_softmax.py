"""Opening the softmax: what was opaque can be counted and fused."""

import pytest

from derive.einsum import Map, Reduce
from derive.errors import IllFormedError
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.notation import cascade
from derive.passes import passes
from derive.rewrite import apply_once
from derive.symbols import N_k, N_q, b
from rules.algebra.split_softmax import RULE


def test_two_reductions_and_three_elementwise_operations_come_out() -> None:
    """Maximum, shift, exponential, sum, quotient."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Graph)
    assert [e.reduce for e in after.einsums] == [Reduce.MAX, None, None, Reduce.SUM, None]
    assert [e.map for e in after.einsums] == [Map.COPY, Map.SUB, Map.EXP, Map.COPY, Map.DIV]


def test_the_opened_softmax_can_be_counted() -> None:
    """4 vector operations and one exponential a score; before, counting refuses."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    with pytest.raises(IllFormedError, match="softmax is opaque to counting; apply split-softmax first"):
        flops(step.before)
    assert flops(step.after)[Pipe.VECTOR].amount == 4 * N_q * N_k
    assert flops(step.after)[Pipe.SFU].amount == N_q * N_k


def test_a_safe_softmax_needs_three_passes() -> None:
    """Maximum, sum, quotient: each waits for the one before."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Graph)
    assert passes(after, "k") == 3


def test_the_statistics_of_two_softmaxes_have_names_of_their_own() -> None:
    """M and l of the first, m_R and l_R of the second."""
    text = """
        P[q,k] = softmax(S[q,k])
        R[q,k] = softmax(P[q,k])
    """
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("R",), width=b)
    twice = apply_once(RULE, apply_once(RULE, graph).after).after
    assert isinstance(twice, Graph)
    assert {"m", "l", "m_R", "l_R", "X_R", "E_R"} <= set(twice.producers)

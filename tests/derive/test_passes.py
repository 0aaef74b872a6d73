"""Passes over the keys: 3 for the safe softmax, 2 once the division is deferred, 1 when the maximum runs."""

import pytest

from derive.attention import variant
from derive.einsum import Einsum, Map, Reduce
from derive.graph import Graph
from derive.notation import cascade
from derive.passes import pass_of, passes
from derive.rewrite import apply_once
from derive.symbols import N_k, N_q, b
from rules.algebra import defer_division, online_softmax, split_softmax

CHAIN = (split_softmax.RULE, defer_division.RULE, online_softmax.RULE)


@pytest.mark.parametrize(("rules", "expected"), [(1, 3), (2, 2), (3, 1)])
@pytest.mark.parametrize("name", ["mha", "gqa", "mqa", "decode"])
def test_softmax_attention_goes_from_three_passes_to_one(name: str, rules: int, expected: int) -> None:
    """Nayak et al. 2024, FuseMax, arXiv:2406.10491, table I: 3-pass, 2-pass and 1-pass cascades."""
    graph = variant(name).graph()
    for rule in CHAIN[:rules]:
        graph = apply_once(rule, graph).after  # type: ignore[assignment]
    assert passes(graph, "k") == expected


def test_the_final_maximum_keeps_its_pass_when_something_else_reads_it() -> None:
    """A rescaled sum needs no second pass; a plain sum of the same terms does."""
    graph = online_softmax.RULE.rewrite(
        online_softmax.RULE.example(), next(online_softmax.shape(online_softmax.RULE.example()))
    )
    plain = online_softmax.RULE.example()
    assert (passes(graph, "k"), passes(plain, "k")) == (1, 2)


def test_a_matrix_product_needs_one_pass() -> None:
    """No reduction is read back along the index it reduces."""
    graph = variant("mha").graph()
    product = Graph(tuple(e for e in graph.einsums if e.output.name in ("Qs", "S")), ("S",))
    assert passes(product, "d") == 1
    assert pass_of(product, "k")["S"] == 1


def test_a_rescaled_sum_of_something_else_than_exponentials_gains_nothing() -> None:
    """exp(m_old - m_new) repairs a sum of exponentials only: without exp the shift still waits for the final maximum."""
    graph = online_softmax.RULE.example()
    shifted = graph.producers["X"].output
    low = Einsum(graph.tensors["l"], (shifted,), Map.COPY, Reduce.SUM, rescale="m")
    fake = Graph((graph.producers["m"], graph.producers["X"], low), ("l",))
    assert passes(fake, "k") == 2


def test_what_is_made_of_a_finished_sum_waits_as_the_sum_does() -> None:
    """Z = A - log(sum_k A) reads A again: the logarithm carries no k, and is there only after the first pass."""
    text = "l[q] = sum[k] A[q,k]\nn[q] = log(l[q])\nZ[q,k] = A[q,k] - n[q]"
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("Z",), width=b)
    assert passes(graph, "k") == 2

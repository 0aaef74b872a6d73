"""The online softmax: two passes over k become one, and what that costs."""

import sympy as sp

from derive.einsum import Einsum, Map, Reduce, Tensor
from derive.flops import Pipe, rescaling
from derive.graph import Graph
from derive.passes import passes
from derive.rewrite import apply_once
from derive.symbols import N_k, N_q, b_l, d_v
from rules.algebra.online_softmax import RULE
from tests.rules.meaning import streamed


def rewritten(graph: Graph) -> Graph:
    """*graph* after the rule."""
    after = apply_once(RULE, graph).after
    assert isinstance(after, Graph)
    return after


def test_two_passes_become_one() -> None:
    """Nayak et al. 2024, arXiv:2406.10491, table I."""
    assert (passes(RULE.example(), "k"), passes(rewritten(RULE.example()), "k")) == (2, 1)


def test_both_sums_follow_the_maximum_and_nothing_else_changes() -> None:
    """L and U are rescaled by m."""
    before, after = RULE.example(), rewritten(RULE.example())
    assert {e.output.name: e.rescale for e in after.einsums if e.rescale} == {"l": "m", "U_O": "m"}
    assert [e.output for e in after.einsums] == [e.output for e in before.einsums]


def test_each_trip_costs_an_exponential_a_row_and_a_product_an_element() -> None:
    """T tiles: T N_q exponentials, T N_q (1 + d_v) products for l and U."""
    schedule = streamed(rewritten(RULE.example()), ("k",), 4)
    trips = sp.ceiling(N_k / 4)
    extra = rescaling(schedule)
    assert extra[Pipe.SFU].amount == trips * N_q
    assert sp.expand(extra[Pipe.VECTOR].amount - trips * N_q * (1 + d_v)) == 0


def test_sums_that_one_factor_cannot_repair_are_refused() -> None:
    """A total over rows has no row's maximum to follow, and neither E + S, E E nor 1/E scales with exp(m_old - m_new)."""
    plain = RULE.example()
    scores, terms = plain.tensors["S"], plain.tensors["E"]
    row, scalar = Tensor("y", scores.indices[:1], b_l), Tensor("y", (), b_l)
    for extra in (
        Einsum(scalar, (terms,), Map.COPY, Reduce.SUM),
        Einsum(row, (terms, scores), Map.ADD, Reduce.SUM),
        Einsum(row, (scores, terms), Map.SUB, Reduce.SUM),
        Einsum(row, (terms, terms), Map.MUL, Reduce.SUM),
        Einsum(row, (scores, terms), Map.DIV, Reduce.SUM),
        Einsum(row, (terms,), Map.EXP, Reduce.SUM),
    ):
        assert not list(RULE.matches(Graph((*plain.einsums, extra), ("O", "y")))), str(extra)


def test_a_sum_weighted_by_a_divisor_is_repaired_like_any_other() -> None:
    """sum_k E / S is linear in E."""
    plain = RULE.example()
    scores, terms = plain.tensors["S"], plain.tensors["E"]
    extra = Einsum(Tensor("y", scores.indices[:1], b_l), (terms, scores), Map.DIV, Reduce.SUM)
    after = rewritten(Graph((*plain.einsums, extra), ("O", "y")))
    assert after.producers["y"].rescale == "m"

"""Computing again what was saved: less to keep, more to do."""

from derive.attention import variant
from derive.differentiate import differentiate
from derive.einsum import Einsum, Index, Map, Tensor
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.rewrite import WherePossible, apply_once, deduce
from derive.symbols import B, N_k, N_q, b, d, d_v, h
from rules.algebra import recompute, split_softmax, split_softmax_gradient
from rules.algebra.recompute import OPERANDS, SCORES

BACK = differentiate(variant("mha").graph("causal"))


def matmul(graph: Graph) -> object:
    """FLOP of the matrix products, the mask's pairs counted as N_q N_k."""
    return (
        flops(graph)[Pipe.MMA].amount.subs(graph.mask.pairs, N_q * N_k) if graph.mask else flops(graph)[Pipe.MMA].amount
    )


def test_the_scores_cost_one_more_product_and_are_no_longer_read() -> None:
    """4 products with P saved, 5 with S and P computed again; nothing with an element a pair is read any more."""
    full = differentiate(variant("mha").graph())
    opened = (split_softmax_gradient.RULE,)
    saved = deduce("", full, opened, ()).schedule.graph
    again = deduce("", full, (WherePossible(SCORES), split_softmax.RULE, *opened), ()).schedule.graph
    pairs = B * h * N_q * N_k
    assert flops(saved)[Pipe.MMA].amount.equals(2 * pairs * (2 * d + 2 * d_v))
    assert flops(again)[Pipe.MMA].amount.equals(2 * pairs * (3 * d + 2 * d_v))
    assert {e.output.name for e in saved.saved} == {"P", "Qs"}
    assert {e.output.name for e in again.saved} == {"Qs"}


def test_scores_and_operands_are_two_choices() -> None:
    """P, then S that it is made of; Q times the scale stands apart."""
    assert [e.output.name for e in SCORES.matches(BACK)] == ["P"]
    assert [e.output.name for e in OPERANDS.matches(BACK)] == ["Qs"]
    first = apply_once(SCORES, BACK).after
    assert isinstance(first, Graph)
    assert [e.output.name for e in SCORES.matches(first)] == ["S"]


def test_what_is_computed_again_is_what_ran_before() -> None:
    """The same Einsum, mask included, before its first reader."""
    after = apply_once(SCORES, BACK).after
    assert isinstance(after, Graph)
    names = [e.output.name for e in after.einsums]
    assert after.producers["P"] in after.given
    assert names.index("P") < names.index(after.readers["P"][0].output.name)


def test_pairs_are_made_again_right_behind_what_they_read() -> None:
    """As early as they can be, so that others can be made of them: P behind S, and not where it is first read."""
    q, k = Index("q", N_q), Index("k", N_k)
    a, s, p, w, y = (Tensor(name, (q, k), b) for name in "ASPWY")
    scores, weights = Einsum(s, (a, a), Map.ADD), Einsum(p, (s,), Map.EXP)
    later = (Einsum(w, (a, s), Map.ADD), Einsum(y, (p, w), Map.MUL))
    made = recompute.rewrite(Graph((scores, *later), ("Y",), given=(scores, weights)), weights)
    assert [e.output.name for e in made.einsums] == ["S", "P", "W", "Y"]

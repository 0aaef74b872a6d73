"""One number a row instead of two passes over the keys."""

from derive.attention import variant
from derive.differentiate import differentiate
from derive.graph import Graph
from derive.passes import passes
from derive.rewrite import WherePossible, apply_once, deduce
from derive.symbols import B, N_q, b_l, h
from derive.traffic import compulsory
from rules.algebra import split_softmax
from rules.algebra.recompute import SCORES
from rules.algebra.use_log_sum_exp import RULE


def recomputed(mask: str = "full") -> Graph:
    """The backward pass of MHA that computes its scores again."""
    return deduce("", differentiate(variant("mha").graph(mask)), (WherePossible(SCORES),), ()).schedule.graph


def test_the_log_sum_exp_is_read_once_a_row() -> None:
    """B h N_q numbers in the width of the statistics, and it is the forward pass that makes them."""
    after = apply_once(RULE, recomputed()).after
    assert isinstance(after, Graph)
    assert "L" not in after.producers
    assert after.tensors["L"].width == b_l
    assert compulsory(after).by_tensor["L"].read == B * h * N_q
    assert {e.output.name for e in after.given} - {e.output.name for e in recomputed().given} == {
        "m", "X", "E", "l", "log_l", "L",
    }  # fmt: skip


def test_the_probabilities_need_one_pass_instead_of_three() -> None:
    """P alone: exp(S - L) is pointwise in S, an opened softmax waits for m and for l."""
    made = recomputed()
    needed = tuple(e for e in made.einsums if e.output.name in ("Qs", "S", "P"))
    probabilities = Graph(needed, ("P",), made.given)
    assert [e.output.name for e in probabilities.einsums][-2:] == ["S", "P"]
    for rule, needed in ((RULE, 1), (split_softmax.RULE, 3)):
        after = apply_once(rule, probabilities).after
        assert isinstance(after, Graph)
        assert passes(after, "k") == needed


def test_a_first_program_has_no_log_sum_exp_to_read() -> None:
    """In the forward pass itself nothing ran before."""
    assert not list(RULE.shape(variant("mha").graph()))

"""Contractions of sums and differences, term by term."""

from derive.attention import variant
from derive.einsum import Map
from derive.flops import is_contraction
from derive.graph import Graph
from derive.rewrite import apply_once
from rules.algebra.distribute import RULE


def test_differential_attention_becomes_two() -> None:
    """O = O1 - O2, each the product of one softmax with V; FLOPs of P V double."""
    graph = variant("differential").graph("causal")
    after = apply_once(RULE, graph).after
    assert isinstance(after, Graph)
    assert after.producers["O"].map is Map.SUB
    assert [t.name for t in after.producers["O"].inputs] == ["O1", "O2"]
    assert "A" not in after.producers
    assert all(is_contraction(after.producers[name]) for name in ("O1", "O2"))
    assert after.producers["O1"].domain == after.producers["O2"].domain == graph.mask


def test_what_else_reads_the_sum_reads_it_still() -> None:
    """A row sum takes its terms apart; the pointwise reader of the sum keeps it."""
    example = RULE.example()
    kept = Graph(example.einsums, (*example.outputs, "Z"))
    after = apply_once(RULE, kept).after
    assert isinstance(after, Graph)
    assert after.producers["Z"] == example.producers["Z"]

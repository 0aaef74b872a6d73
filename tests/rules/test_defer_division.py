"""Deferring the division: fewer divisions, one pass less."""

from derive.einsum import Map
from derive.graph import Graph
from derive.passes import passes
from derive.rewrite import apply_once
from derive.symbols import B, N_k, N_q, d_v, h
from rules.algebra.defer_division import RULE
from rules.schedule.examples import three_pass


def divisions(graph: Graph) -> object:
    """Points of all divisions."""
    return sum(e.points for e in graph.einsums if e.map is Map.DIV)


def test_a_division_a_score_becomes_one_an_output_element() -> None:
    """N_q N_k divisions become N_q d_v."""
    step = apply_once(RULE, RULE.example())
    assert divisions(step.before) == N_q * N_k  # type: ignore[arg-type]
    assert divisions(step.after) == N_q * d_v  # type: ignore[arg-type]


def test_attention_no_longer_waits_for_the_row_sum() -> None:
    """Three passes over k become two, in every head of every sequence."""
    step = apply_once(RULE, three_pass())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    assert (passes(step.before, "k"), passes(step.after, "k")) == (3, 2)
    assert divisions(step.after) == B * h * N_q * d_v


def test_a_masked_contraction_keeps_its_mask_and_the_division_covers_every_row() -> None:
    """U runs over kept pairs; O = U / l has no key to mask."""
    after = apply_once(RULE, three_pass("causal")).after
    assert isinstance(after, Graph)
    assert after.producers["U_O"].domain == after.mask
    assert after.producers["O"].domain is None

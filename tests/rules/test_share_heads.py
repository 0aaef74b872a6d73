"""Sharing KV heads: the copies are gone, the work is not."""

from derive.attention import variant
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.rewrite import apply_once
from derive.schedule import lift
from derive.symbols import N_k, N_q, d, h, h_k
from derive.traffic import traffic
from rules.algebra.share_heads import RULE


def test_the_copies_bytes_are_gone() -> None:
    """K read and K_rep written and read (h N_k d each) become one read of K."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    before, after = traffic(lift(step.before)).by_tensor, traffic(lift(step.after)).by_tensor
    assert (before["K"].read, before["K_rep"].write, before["K_rep"].read) == (h_k * N_k * d, h * N_k * d, h * N_k * d)
    assert "K_rep" not in after
    assert after["K"].read == h_k * N_k * d


def test_the_work_stays() -> None:
    """2 h N_q N_k d FLOP before and after."""
    step = apply_once(RULE, RULE.example())
    for graph in (step.before, step.after):
        assert isinstance(graph, Graph)
        assert flops(graph)[Pipe.MMA].amount == 2 * h * N_q * N_k * d


def test_repeated_attention_becomes_grouped_attention() -> None:
    """Without its two copies, the variant that repeats K and V is the one that does not."""
    graph = variant("gqa-repeated").graph()
    for _ in range(2):
        graph = apply_once(RULE, graph).after  # type: ignore[assignment]
    assert graph == variant("gqa").graph()

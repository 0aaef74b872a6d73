"""Products of three factors: which order leaves no intermediate over the keys, and what it saves."""

from derive.attention import variant
from derive.exact import value
from derive.flops import Pipe, flops, is_contraction
from derive.graph import Graph
from derive.masks import MASKS
from derive.rewrite import apply_once
from derive.symbols import d_c
from derive.traffic import traffic
from rules.algebra.reassociate import RULE
from rules.derivations import plan


def after(graph: Graph) -> Graph:
    """*graph* with the rule taken wherever it applies."""
    while next(RULE.matches(graph), None) is not None:
        graph = apply_once(RULE, graph).after  # type: ignore[assignment]
    return graph


def test_linear_attention_is_linear_in_the_length() -> None:
    """2 N d d_v for K^T V and again for Q times it: no N^2 is left."""
    found = after(variant("linear").graph())
    at = {"N_q": 10, "N_k": 10, "d": 3, "d_v": 5, "h": 1, "B": 1}
    assert [e.output.name for e in found.einsums] == ["V_K", "O"]
    assert value(flops(found)[Pipe.MMA].amount, at) == 2 * 2 * 10 * 3 * 5


def test_a_softmax_or_a_mask_between_the_products_forbids_it() -> None:
    """Attention has nothing of its shape; under a mask the scores are thinned out."""
    assert not list(RULE.shape(variant("mha").graph()))
    for mask in MASKS:
        graph = variant("linear").graph(mask)
        assert bool(list(RULE.matches(graph))) == (mask == "full")


def test_absorption_leaves_latents_and_nothing_a_head_and_key() -> None:
    """K and V are gone; what is contracted instead has the latent's width; masks do not stand in the way."""
    for mask in ("full", "causal"):
        found = after(variant("mla").graph(mask))
        made = {e.output.name for e in found.einsums}
        assert not made & {"K", "V"}
        products = [e for e in found.einsums if is_contraction(e)]
        per_key_and_head = [e for e in products if {"h", "k"} <= {i.name for i in e.output.indices}]
        assert {e.output.name for e in per_key_and_head} == {"S_nope", "S_rope"}
        latent = [e for e in products if any(i.extent == d_c for i in e.output.indices)]
        assert len(latent) == 2  # the absorbed queries and the outputs before W_V


def test_absorbed_decode_reads_a_latent_a_token() -> None:
    """576 elements a token at d_c = 512, d_r = 64, whatever the heads; expanded it writes and reads h (d + d_v) more."""
    at = {"N_q": 1, "N_k": 4096, "d": 128, "d_v": 128, "d_c": 512, "d_r": 64, "h": 16, "B": 1, "B_r": 1, "B_c": 64}
    moves = {s: traffic(plan(s).derive(variant("mla").graph()).schedule).by_tensor for s in ("flash2", "absorbed")}
    latent = sum(value(moves["absorbed"][name].read, at) for name in ("C", "K_rope"))
    assert latent == 16 * 4096 * 576  # once a head at the SMs; the heads share it in the cache
    assert "K" not in moves["absorbed"]
    assert value(moves["flash2"]["K"].write, at) == value(moves["flash2"]["K"].read, at) == 16 * 4096 * 128

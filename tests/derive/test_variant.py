"""Variants: sizes that may be left unsaid, masks by name, and attention's shape in each."""

import pytest
import sympy as sp

from derive.attention import names, variant
from derive.errors import UnknownNameError
from derive.symbols import B, N_k, N_p, N_q, b, b_kv, b_p, b_s, d, d_v, h, h_k
from derive.variant import MASKS


@pytest.mark.parametrize("name", [n for n in names() if "softmax" in variant(n).text])
@pytest.mark.parametrize("mask", MASKS)
def test_every_variant_is_a_graph_under_every_mask(name: str, mask: str) -> None:
    """Q, K and V in, O out, and the other way round on the way back; the scores have a mask or none."""
    graph = variant(name).graph(mask)
    forward = graph.given or graph.einsums
    if variant(name).direction == "backward":
        assert {t.name for t in graph.sources} == {"Q", "K", "V", "dO"}
        assert graph.outputs == ("dQ", "dK", "dV")
    else:
        assert {t.name for t in graph.inputs} == {"Q", "K", "V"} | (
            {"Kp", "Vp"} if N_p in variant(name).symbols else set()
        )
        assert graph.outputs == ("O",)
    assert (graph.mask.name if graph.mask else "full") == mask
    assert next(e for e in forward if e.output.name == "Qs").domain is None
    assert variant(name).symbols <= {N_q, N_k, N_p, d, d_v, h, h_k, B}


def test_tensors_have_widths_of_their_own() -> None:
    """Keys and values, scores and probabilities may be stored in other types."""
    tensors = variant("gqa-repeated").graph().tensors
    widths = {name: tensors[name].width for name in ("Q", "K", "V", "K_rep", "V_rep", "S", "P", "O")}
    assert widths == {"Q": b, "K": b_kv, "V": b_kv, "K_rep": b_kv, "V_rep": b_kv, "S": b_s, "P": b_p, "O": b}


def test_a_default_is_put_in_for_what_is_not_given() -> None:
    """Given h alone: hk falls back to h, d_v to d, the batch to 1."""
    extents = {i.name: i.extent for i in variant("gqa").graph(given=(h, d, N_q, N_k)).indices.values()}
    assert extents == {"b": 1, "g": h, "r": 1, "q": N_q, "k": N_k, "d": d, "e": d}


def test_defaults_fall_back_one_after_another() -> None:
    """Given nothing: hk is h is 1; with hk given it stays."""
    assert variant("gqa").graph(given=()).indices["g"].extent == 1
    assert variant("gqa").graph(given=(h, h_k)).indices["r"].extent == h / h_k
    assert variant("gqa").graph().indices["e"].extent == d_v


def test_grouped_heads_must_divide() -> None:
    """H / hk query heads a group."""
    assert variant("gqa").divides == ((h_k, h),)
    assert variant("mha").divides == ()


def test_a_decode_step_has_one_query() -> None:
    """All else is grouped-query attention."""
    assert variant("decode").graph().indices["q"].extent == sp.Integer(1)
    assert variant("decode").text == variant("gqa").text


def test_only_cross_attention_and_a_shared_prefix_have_two_sequences() -> None:
    """N stands for both lengths elsewhere."""
    assert {name for name in names() if not variant(name).one_sequence} == {"cross", "cascade"}


def test_an_unknown_mask_is_refused_with_the_nearest() -> None:
    """So is an unknown variant."""
    with pytest.raises(UnknownNameError, match="there is no mask 'casual'; did you mean causal"):
        variant("mha").graph("casual")
    with pytest.raises(UnknownNameError, match="there is no variant 'mah'; did you mean mha"):
        variant("mah")

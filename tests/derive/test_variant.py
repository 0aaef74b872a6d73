"""Variants: sizes that may be left unsaid, masks by name, and attention's shape in each."""

import pytest
import sympy as sp

from derive.attention import names, variant
from derive.einsum import Map
from derive.errors import BadValueError, UnknownNameError
from derive.graph import Graph
from derive.symbols import MEANINGS, N_k, N_q, b, b_kv, b_p, b_s, d, d_v, h, h_k

MASKABLE = [n for n in names() if {"q", "k"} <= set(variant(n).extents) and variant(n).own_mask is None]
RECURRENT = [n for n in names() if variant(n).own_mask not in (None, "full")]


MASKED = [(n, m) for n in MASKABLE for m in ("full", "causal", "window-tl", "global-local") if variant(n).takes(m)]


@pytest.mark.parametrize(("name", "mask"), MASKED)
def test_every_variant_is_a_graph_under_every_mask(name: str, mask: str) -> None:
    """Its inputs in, its outputs out, and the other way round on the way back; the scores have a mask or none."""
    graph = variant(name).graph(mask)
    found = variant(name)
    if found.direction == "backward":
        inputs = [t for t in Graph(graph.given, ()).inputs if t.name not in found.constants]
        assert set(graph.outputs) == {f"d{t.name}" for t in inputs}
        assert {f"d{name}" for name in found.outputs} <= {t.name for t in graph.sources}
    else:
        assert graph.outputs == found.outputs
        assert {t.name for t in graph.inputs} >= set(found.constants)
    assert (graph.mask.name if graph.mask else "full") == mask
    for e in (*graph.given, *graph.einsums):
        over = {i.name for i in e.space}
        pairs = {"q", "k"} <= over or any(set(m.axes) <= over for m in graph.masks)
        assert (e.domain is not None) == (pairs and mask != "full")
    assert all(MEANINGS[s.name].key for s in found.symbols)


@pytest.mark.parametrize("name", RECURRENT)
def test_a_variant_with_a_mask_of_its_own_takes_no_other(name: str) -> None:
    """It is a recurrence, and causal by it; what runs over the pairs of a chunk is masked, whatever is not said.

    An inverse needs no mask: it is a triangle by itself.
    """
    found = variant(name)
    graph = found.graph()
    assert graph == found.graph(found.own_mask or "full")
    assert graph.recurrences
    for e in graph.einsums:
        pairs = {"q", "k"} <= {i.name for i in e.output.indices}
        assert e.domain is not None or not pairs or e.map is Map.INVERSE
    assert found.seen_by(graph.mask).startswith("causal by its recurrence")
    with pytest.raises(
        BadValueError, match=f"{name} is causal by its recurrence and takes no other mask; leave mask=window out"
    ):
        found.graph("window")
    assert all(MEANINGS[s.name].key for s in found.symbols)


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
    assert {name for name in names() if not variant(name).one_sequence} == {
        "cross",
        "cross-backward",
        "cascade",
    }


def test_an_unknown_mask_is_refused_with_the_nearest() -> None:
    """So is an unknown variant."""
    with pytest.raises(UnknownNameError, match="there is no mask 'casual'; did you mean causal"):
        variant("mha").graph("casual")
    with pytest.raises(UnknownNameError, match="there is no variant 'mah'; did you mean mha"):
        variant("mah")


@pytest.mark.parametrize("name", [n for n in names() if not n.endswith("-backward") and n != "matmul"])
def test_every_output_has_an_element_for_each_query_head_and_value(name: str) -> None:
    """However its heads are grouped and its queries cut into chunks: B h N_q times the width of a value."""
    graph = variant(name).graph()
    tensors = {t.name: t for e in graph.einsums for t in (e.output, *e.inputs)}
    for output in graph.outputs:
        size = sp.Mul(*(i.extent for i in tensors[output].indices))
        queries = {s for s in size.free_symbols if s.name == "N_q"}
        width = {s for s in size.free_symbols if s.name in ("d", "d_v", "d_c")}
        assert len(width) == 1
        assert size == sp.Mul(*(s for s in size.free_symbols if s.name in ("B", "h")), *queries, *width)


@pytest.mark.parametrize("name", ["gqa", "gqa-repeated", "grouped-latent", "grouped-tied"])
def test_no_head_is_lost_between_groups(name: str) -> None:
    """Groups times heads a group are the query heads, of every tensor that has both."""
    graph = variant(name).graph()
    tensors = {t.name: t for e in graph.einsums for t in (e.output, *e.inputs)}
    sizes = [sp.Mul(*(i.extent for i in t.indices)) for t in tensors.values() if t.indices]
    assert not any(sp.denom(size) != 1 for size in sizes)
    powers = [size.as_powers_dict() for size in sizes]
    assert all(exponent == 1 for each in powers for base, exponent in each.items() if base.name in ("h", "h_k"))


@pytest.mark.parametrize(
    ("name", "tensor", "width"), [("dropout", "D", 1), ("topk", "T", 4), ("dsa", "T", 4), ("mha", "S", b_s)]
)
def test_a_tensor_of_another_type_has_its_width(name: str, tensor: str, width: sp.Expr) -> None:
    """A dropout mask is a byte an element, as PyTorch keeps it; positions are 32-bit integers."""
    tensors = {t.name: t for e in variant(name).graph().einsums for t in (e.output, *e.inputs)}
    assert tensors[tensor].width == width

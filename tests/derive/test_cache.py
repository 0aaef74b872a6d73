"""Cached bytes of a stack of layers and the longest sequence in a budget, against layers that drop tokens one by one."""

from __future__ import annotations

from collections import deque

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.cache import Layers, Stack, cached, kept_tokens, token_bytes, token_elements
from derive.errors import DomainError
from derive.exact import value
from derive.masks import Pattern
from derive.notation import cascade
from derive.symbols import B, C_kv, L, L_w, N, N_k, N_q, R, W, b, d, d_v, h, h_k
from rules.parallel import scheme
from tests.seen import seen

GQA = token_bytes(variant("gqa").graph())
HYBRID = Stack((Layers(L - L_w, GQA), Layers(L_w, GQA, kept_tokens(Pattern("window")))))


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, int]:
    """A stack with at least one layer that keeps everything."""
    windowed = draw(st.integers(0, 4))
    rest = {name: draw(st.integers(1, 4)) for name in ("h_k", "d", "d_v", "B", "b_kv")}
    return {"L": windowed + draw(st.integers(1, 3)), "L_w": windowed, "W": draw(st.integers(1, 9)), **rest}


def filled(at: dict[str, int], length: int) -> int:
    """Bytes in the buffers of all layers after *length* tokens; a windowed layer's buffer drops the oldest."""
    row = at["h_k"] * (at["d"] + at["d_v"]) * at["b_kv"]
    layers: list[deque[int]] = [deque() for _ in range(at["L"] - at["L_w"])]
    layers += [deque(maxlen=at["W"]) for _ in range(at["L_w"])]
    for layer in layers:
        layer.extend(range(length))
    return at["B"] * row * sum(map(len, layers))


@settings(max_examples=60, deadline=None)
@given(at=sizes(), length=st.integers(1, 20))
def test_bytes_are_those_of_buffers_that_drop_what_no_query_sees(at: dict[str, int], length: int) -> None:
    """Windowed layers stop growing at W tokens."""
    assert value(HYBRID.bytes, {**at, "N": length}) == filled(at, length)


@settings(max_examples=60, deadline=None)
@given(at=sizes(), budget=st.integers(0, 4000))
def test_the_longest_sequence_fits_and_one_token_more_does_not(at: dict[str, int], budget: int) -> None:
    """Exactly, on either side of the window."""
    longest = int(value(HYBRID.longest, {**at, "C_kv": budget}))
    assert filled(at, longest) <= budget < filled(at, longest + 1)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize(
    "pattern",
    [
        Pattern(),
        Pattern("causal"),
        Pattern("window"),
        Pattern("window", frozenset({"left", "right"})),
        Pattern("sinks"),
    ],
    ids=str,
)
def test_tokens_kept_are_those_that_the_last_query_or_a_later_one_sees(pattern: Pattern, data: st.DataObject) -> None:
    """Looked at one by one: queries from the last of N on, over a sequence that goes on."""
    at = {name: data.draw(st.integers(1, 6)) for name in ("W", "W_l", "N_s")} | {"W_r": 0}
    length, more = data.draw(st.integers(1, 12)), 8
    pairs = seen(pattern, length + more, length + more, at)
    needed = pairs[length - 1 :, :length].any(axis=0).sum() if pattern.name != "sinks" else None
    kept = value(kept_tokens(pattern), {**at, "N": length})
    assert kept == (pairs[length - 1, :length].sum() if pattern.name == "sinks" else needed)


def test_masks_under_which_no_one_cache_is_kept_are_refused() -> None:
    """A chunk's cache is emptied; a dilated window's next query sees other keys."""
    with pytest.raises(DomainError, match="mask=chunk keeps now more tokens and now fewer"):
        kept_tokens(Pattern("chunk"))
    with pytest.raises(DomainError, match="mask=dilated: later queries see keys that the last one does not"):
        kept_tokens(Pattern("dilated"))


def test_what_is_cached_follows_from_the_graph() -> None:
    """Inputs with the key index, each once: a latent read as keys and as values is one tensor, whatever its name."""
    assert [t.name for t in cached(variant("gqa").graph())] == ["K", "V"]
    assert [t.name for t in cached(variant("mla").graph())] == ["C", "K_rope"]
    assert [t.name for t in cached(variant("bias").graph())] == ["K", "V"]
    assert token_elements(variant("matmul").graph()) == {"K": d}
    text = """
        S[b,h,q,k] = sum[c] Q[b,h,q,c] * latent[b,k,c]
        P[b,h,q,k] = softmax(S[b,h,q,k])
        O[b,h,q,c] = sum[k] P[b,h,q,k] * latent[b,k,c]
    """
    graph = cascade(text, {"b": B, "h": h, "q": N_q, "k": N_k, "c": d}, outputs=("O",), width=b)
    assert token_elements(graph) == {"latent": d}
    assert token_bytes(graph) == b * d


def test_a_backward_pass_and_a_graph_without_keys_cache_nothing() -> None:
    """There is nothing that a later query would need."""
    with pytest.raises(DomainError, match="a backward pass leaves no cache"):
        cached(variant("mha-backward").graph())
    graph = cascade("l[q] = sum[j] X[q,j]", {"q": N_q, "j": N_k}, outputs=("l",), width=b)
    with pytest.raises(DomainError, match="no input carries the key index k"):
        cached(graph)


def test_one_of_several_devices_caches_the_heads_it_uses() -> None:
    """Hk / min(R, hk) heads: fewer heads than devices lie on several."""
    device = scheme("tensor-parallel").device(variant("gqa").graph())
    elements = token_elements(variant("gqa").graph(), device)
    assert elements == {"K": h_k * d / sp.Min(R, h_k), "V": h_k * d_v / sp.Min(R, h_k)}


def test_where_there_is_no_closed_form_it_says_so() -> None:
    """Two windows, windows alone, and sinks are left to a search."""
    windows = [Layers(L, GQA, sp.Min(N, size, evaluate=False)) for size in (W, 2 * W)]
    with pytest.raises(DomainError, match="no closed form for the longest N with 2 windows"):
        _ = Stack((Layers(L, GQA), *windows)).longest
    with pytest.raises(DomainError, match="there is no longest N: every layer keeps a window alone"):
        _ = Stack((windows[0],)).longest
    with pytest.raises(DomainError, match="no closed form for the longest N: a layer keeps"):
        _ = Stack((Layers(L, GQA, kept_tokens(Pattern("sinks"))),)).longest
    assert Stack((Layers(L, GQA),)).longest == sp.floor(C_kv / sp.factor(B * L * GQA))

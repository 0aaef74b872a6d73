"""Variants of the scores, the heads and the order of products, against NumPy written plainly from their papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.einsum import Einsum, Index, Map, Tensor
from derive.errors import IllFormedError
from derive.evaluate import evaluate, random_inputs
from derive.execute import execute
from derive.operators import Array
from derive.symbols import N_k, N_q, b
from rules.derivations import plan
from tests.seen import seen
from tests.strategies import PAIRS, shapes

SCALARS = {"c": 0.7, "a": -0.3, "cap": 1.7, "p": 0.4, "lambda": 0.8}
Inputs = Mapping[str, Array]


def softmax(scores: Array, kept: Array, extra: Array | float = 0.0) -> Array:
    """Along the last axis, over the pairs that are kept, with *extra* beside the sum; a row without any is 0."""
    weights = np.where(kept, np.exp(scores), 0.0)
    total = weights.sum(axis=-1, keepdims=True) + extra
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def scores(i: Inputs) -> Array:
    """C Q K^T, head by head."""
    return 0.7 * i["Q"] @ np.swapaxes(i["K"], -1, -2)


def latent(i: Inputs, kept: Array) -> Array:
    """One latent a token, shared by a group: key and value at once, with rotary channels beside."""
    grouped = i["C"].ndim == 4
    c = i["C"][:, :, None] if grouped else i["C"][:, None]
    rope = i["K_rope"][:, None, None] if grouped else i["K_rope"][:, None]
    s = 0.7 * (i["Q"] @ np.swapaxes(c, -1, -2) + i["Q_rope"] @ np.swapaxes(rope, -1, -2))
    return softmax(s, kept) @ c


def mla(i: Inputs, kept: Array) -> Array:
    """Keys and values of each head, expanded."""
    k = np.einsum("hdc,bkc->bhkd", i["W_K"], i["C"])
    v = np.einsum("hec,bkc->bhke", i["W_V"], i["C"])
    rope = i["Q_rope"] @ np.swapaxes(i["K_rope"][:, None], -1, -2)
    return softmax(0.7 * (i["Q"] @ np.swapaxes(k, -1, -2) + rope), kept) @ v


def differential(i: Inputs, kept: Array) -> Array:
    """The difference of two softmaxes."""
    first, second = (0.7 * i[f"Q{n}"] @ np.swapaxes(i[f"K{n}"], -1, -2) for n in (1, 2))
    return (softmax(first, kept) - 0.8 * softmax(second, kept)) @ i["V"]


def alibi(i: Inputs, kept: Array) -> Array:
    """The bias as the paper has it, slope times (k - q): the row constant is not dropped here."""
    rows, keys = kept.shape
    distance = np.arange(keys)[None, :] - np.arange(rows)[:, None]
    return softmax(scores(i) + i["slope"][None, :, None, None] * distance, kept) @ i["V"]


def tied(i: Inputs, kept: Array) -> Array:
    """V1 is half of the key and half of the value; here the first half of the output."""
    rope = i["Q_rope"] @ np.swapaxes(i["K_rope"][:, None, None], -1, -2)
    return softmax(0.7 * (i["Q"] @ np.swapaxes(i["V1"][:, :, None], -1, -2) + rope), kept) @ i["V1"][:, :, None]


PLAIN: Mapping[str, Callable[[Inputs, Array], Array]] = {
    "bias": lambda i, kept: softmax(scores(i) + i["A"], kept) @ i["V"],
    "bias-per-head": lambda i, kept: softmax(scores(i) + i["A"], kept) @ i["V"],
    "bias-per-key": lambda i, kept: softmax(scores(i) + i["A"][:, None, None], kept) @ i["V"],
    "alibi": alibi,
    "softcap": lambda i, kept: softmax(1.7 * np.tanh(scores(i) / 1.7), kept) @ i["V"],
    "sigmoid": lambda i, kept: np.where(kept, 1 / (1 + np.exp(0.3 - scores(i))), 0.0) @ i["V"],
    "sink-logits": lambda i, kept: softmax(scores(i), kept, np.exp(i["sink"])[None, :, None, None]) @ i["V"],
    "differential": differential,
    "linear": lambda i, kept: np.where(kept, i["Q"] @ np.swapaxes(i["K"], -1, -2), 0.0) @ i["V"],
    "mla": mla,
    "mla-latent": latent,
    "grouped-latent": latent,
    "grouped-tied": tied,
}


@settings(max_examples=80, deadline=None)
@given(name=st.sampled_from(sorted(PLAIN)), mask=st.sampled_from(["full", "causal", "window"]), numbers=shapes())
def test_a_variant_is_what_its_paper_says(name: str, mask: str, numbers: dict[str, int]) -> None:
    """Rectangular, masked, rows that see nothing, groups of heads."""
    from derive.masks import Pattern

    graph = variant(name).graph(mask)
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    found = evaluate(graph, inputs, SCALARS, numbers)[graph.outputs[0]]
    wanted = PLAIN[name](inputs, seen(Pattern(mask), numbers["N_q"], numbers["N_k"], numbers))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


FUSED = [(v, s) for v, s in PAIRS if v in {*PLAIN, "dropout"} and s not in ("op-by-op", "square")]


@settings(max_examples=60, deadline=None)
@given(pair=st.sampled_from(FUSED), numbers=shapes())
def test_a_schedule_keeps_the_value_tile_by_tile(pair: tuple[str, str], numbers: dict[str, int]) -> None:
    """What is generated from coordinates is the same in every tile."""
    graph = variant(pair[0]).graph("causal" if pair[1] != "reassociated" else "full")
    made = plan(pair[1]).derive(graph)
    numbers |= {"M": 64}
    inputs = random_inputs(graph, numbers, np.random.default_rng(1))
    wanted, found = evaluate(graph, inputs, SCALARS, numbers), execute(made.schedule, inputs, SCALARS, numbers)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9, atol=1e-11)


def test_dropout_keeps_a_share_of_the_pairs_and_scales_the_rest() -> None:
    """0 with probability p, else 1 / (1 - p); another mask has another seed."""
    graph = variant("dropout").graph()
    numbers = {"N_q": 200, "N_k": 300, "d": 1, "d_v": 1, "h": 1, "B": 1}
    made = evaluate(graph, random_inputs(graph, numbers, np.random.default_rng(0)), SCALARS, numbers)["D"]
    assert set(np.unique(made)) == {0.0, 1 / 0.6}
    assert float((made == 0).mean()) == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda q, k: Einsum(Tensor("x", (q, k), b), (), Map.POSITION), "a position is along one index"),
        (lambda q, k: Einsum(Tensor("D", (q,), b), (Tensor("p", (k,), b),), Map.KEEP), "keep reads scalars only"),
    ],
)
def test_what_is_generated_reads_no_tensor(make: Callable[[Index, Index], Einsum], says: str) -> None:
    """A position has one index; a mask's rate is a scalar."""
    with pytest.raises(IllFormedError, match=says):
        make(Index("q", N_q), Index("k", N_k))

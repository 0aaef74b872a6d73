"""Gradients against central finite differences in the interpreter, float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings

from derive.attention import variant
from derive.differentiate import differentiate, shift_cancels
from derive.einsum import Map, Reduce
from derive.errors import IllFormedError
from derive.evaluate import evaluate, random_inputs
from derive.flops import is_contraction
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.operators import Array
from derive.rewrite import apply_once
from derive.symbols import N_k, N_q, b, b_acc, b_kv, d_v
from rules.algebra import split_softmax
from rules.schedule.examples import streaming, two_pass
from tests.strategies import masks, shapes, variants

SCALARS = {"c": 0.7, "a": -0.3, "cap": 1.7, "p": 0.4, "lambda": 0.8}
STEP = 1e-5
"""Of a central difference: its error is of the order of STEP squared, its rounding of 1e-16 / STEP."""


def gradients(graph: Graph, numbers: dict[str, int], inputs: dict[str, Array]) -> dict[str, Array]:
    """What the differentiated graph gives for random gradients of the outputs, which are added to *inputs*."""
    back = differentiate(graph)
    inputs |= {n: a for n, a in random_inputs(back, numbers, np.random.default_rng(1)).items() if n not in inputs}
    return evaluate(back, inputs, SCALARS, numbers)


def differences(graph: Graph, name: str, numbers: dict[str, int], inputs: dict[str, Array]) -> Array:
    """The gradient of ``sum dO O`` by the input *name*, one entry after another."""

    def loss(changed: Array) -> float:
        found = evaluate(graph, {**inputs, name: changed}, SCALARS, numbers)
        return float(sum((found[out] * inputs[f"d{out}"]).sum() for out in graph.outputs))

    found = np.zeros_like(inputs[name])
    for at in np.ndindex(found.shape):
        step = np.zeros_like(found)
        step[at] = STEP
        found[at] = (loss(inputs[name] + step) - loss(inputs[name] - step)) / (2 * STEP)
    return found


def assert_right(graph: Graph, numbers: dict[str, int]) -> None:
    """Every gradient of *graph* is its finite difference."""
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    read = dict(inputs)
    found = gradients(graph, numbers, inputs)
    for name in read:
        wanted = differences(graph, name, numbers, inputs)
        np.testing.assert_allclose(found[f"d{name}"], wanted, rtol=1e-5, atol=1e-7, err_msg=f"d{name}\n{graph}")


def small(numbers: dict[str, int]) -> dict[str, int]:
    """Sizes of which every entry can be moved."""
    return {**numbers, "N_q": min(numbers["N_q"], 5), "N_k": min(numbers["N_k"], 5), "B": 1}


@settings(max_examples=40)
@given(name=variants, mask=masks, numbers=shapes())
@example(name="gqa", mask="causal", numbers={"N_q": 5, "N_k": 3, "d": 2, "d_v": 3, "h_k": 2, "h": 4, "B": 1})
@example(name="mha", mask="causal-tl", numbers={"N_q": 3, "N_k": 5, "d": 3, "d_v": 1, "h_k": 1, "h": 1, "B": 1})
def test_every_variant_s_gradients_are_finite_differences(name: str, mask: str, numbers: dict[str, int]) -> None:
    """Rectangular, masked either way, rows that see no key, grouped heads, d unlike d_v."""
    numbers = small(numbers) | ({"N_q": 1} if name == "decode" else {})
    assert_right(variant(name).graph(mask), numbers)


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_an_opened_softmax_has_the_same_gradients(mask: str) -> None:
    """Its maximum hands nothing on, and the streaming form differentiates like the plain one."""
    numbers = {"N_q": 4, "N_k": 3, "d": 2, "d_v": 3, "h": 2, "h_k": 1, "B": 1}
    plain = variant("mha").graph(mask)
    inputs = random_inputs(plain, numbers, np.random.default_rng(0))
    wanted = gradients(plain, numbers, inputs)
    opened = apply_once(split_softmax.RULE, plain).after
    assert isinstance(opened, Graph)
    for graph in (opened, two_pass(mask), streaming(mask)):
        found = gradients(graph, numbers, dict(inputs))
        for name in ("dQ", "dK", "dV"):
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9, atol=1e-12)


SMALL = {"q": N_q, "k": N_k, "e": d_v}
OPERATORS = {
    "copy": "Z[q,k] = A[q,k]",
    "repeat": "Z[q,k] = A[q]",
    "sum": "Z[q] = sum[k] A[q,k]",
    "sum of all": "Z[e] = sum[q,k] A[q,k,e]",
    "product": "Z[q,e] = sum[k] A[q,k] * B[k,e]",
    "square": "Z[q] = sum[k] A[q,k] * A[q,k]",
    "factor that lacks the sum": "Z[q] = sum[k] A[q,k] * B[q]",
    "sum and difference": "Y[q,k] = A[q,k] + B[k]\nZ[q] = sum[k] Y[q,k] - A[q,k]",
    "subtrahend alone": "Z[q,k] = A[q,k] - B[k]",
    "sum over what one term lacks": "Z[q] = sum[k] A[q] - B[k]",
    "quotient": "E[q,k] = exp(A[q,k])\nZ[q] = sum[k] B[k] / E[q,k]",
    "exponential of a sum": "Z[q] = sum[k] exp(A[q,k])",
    "logarithm": "E[q,k] = exp(A[q,k])\nZ[q,k] = log(E[q,k])\nY[q] = sum[k] Z[q,k] * B[k]",
    "log-sum-exp": "E[q,k] = exp(A[q,k])\nl[q] = sum[k] E[q,k]\nZ[q] = log(l[q])",
    "negative": "Z[q,k] = neg(A[q,k])\nY[q] = sum[k] Z[q,k] * B[k]",
    "read three times": "Y[q,k] = A[q,k] * A[q,k]\nX[q,k] = Y[q,k] - A[q,k]\nZ[q] = sum[k] X[q,k] * B[k]",
    "tanh": "T[q,k] = tanh(A[q,k])\nZ[q] = sum[k] T[q,k] * B[k]",
    "sigmoid": "T[q,k] = sigmoid(A[q,k])\nZ[q] = sum[k] T[q,k] * B[k]",
    "dropout": "D[q,k] = keep(c)\nY[q,k] = A[q,k] * D[q,k]\nZ[q] = sum[k] Y[q,k] * B[k]",
    "position": "x[k] = position()\nY[q,k] = A[q,k] * x[k]\nZ[q] = sum[k] Y[q,k] * B[k]",
    "softmax": "P[q,k] = softmax(A[q,k])\nZ[q,e] = sum[k] P[q,k] * B[k,e]",
}


@pytest.mark.parametrize("mask", [None, causal(N_q, N_k, align="top-left")], ids=["full", "causal-tl"])
@pytest.mark.parametrize("text", OPERATORS.values(), ids=OPERATORS)
def test_every_operator_s_gradient_is_a_finite_difference(text: str, mask: object) -> None:
    """Each line of the table, sums and masks included, with the last two tensors as outputs."""
    graph = cascade(text, SMALL, outputs=(text.splitlines()[-1][0],), width=b, mask=mask)  # type: ignore[arg-type]
    assert_right(graph, {"N_q": 4, "N_k": 3, "d_v": 2})
    both = Graph(graph.einsums, tuple(e.output.name for e in graph.einsums[-2:]))
    assert_right(both, {"N_q": 2, "N_k": 4, "d_v": 3})


def test_every_operator_has_a_derivative_or_is_refused() -> None:
    """The cases above use all of them; the softmax's gradient has none."""
    used = {e.map for text in OPERATORS.values() for e in cascade(text, SMALL, outputs=(), width=b).einsums}
    none = {Map.SOFTMAX_GRADIENT, Map.VIEW, Map.RELU, Map.MAXIMUM, Map.TOP, Map.GATHER, Map.INVERSE}
    assert used == set(Map) - none
    with pytest.raises(IllFormedError, match="gather has no derivative here"):
        differentiate(variant("topk").graph())
    square = {"q": N_q, "k": N_q}
    with pytest.raises(IllFormedError, match="inverse has no derivative here"):
        differentiate(cascade("T[q,k] = inverse(A[q,k])", square, outputs=("T",), width=b))
    back = differentiate(variant("mha").graph())
    with pytest.raises(IllFormedError, match="softmax_gradient has no derivative here"):
        differentiate(Graph((*back.given, *back.einsums), back.outputs))


def test_the_backward_pass_has_four_products_when_p_is_saved() -> None:
    """dV, dP, dQ and dK; it reads P and leaves one gradient an input, each as wide as its tensor."""
    back = differentiate(variant("mha").graph(), {"dQs": b_acc})
    assert [e.output.name for e in back.einsums if is_contraction(e)] == ["dP", "dV", "dQs", "dK"]
    assert {t.name for t in back.inputs} == {"dO", "V", "P", "K", "Qs"}
    assert {e.output.name for e in back.saved} == {"P", "Qs"}
    assert back.outputs == ("dQ", "dK", "dV")
    widths = {name: back.tensors[name].width for name in ("dK", "dQ", "dQs")}
    assert widths == {"dK": b_kv, "dQ": b, "dQs": b_acc}


def test_a_shared_head_gathers_its_gradient_from_its_group() -> None:
    """Both dK and dV are summed over the group's query heads r and the queries."""
    back = differentiate(variant("gqa").graph())
    for name in ("dK", "dV"):
        assert {i.name for i in back.producers[name].reduced} == {"r", "q"}


def test_masked_points_have_no_gradient() -> None:
    """Whatever runs over queries and keys runs over the kept pairs."""
    back = differentiate(variant("gqa").graph("causal"))
    for e in back.einsums:
        runs_over_pairs = {"q", "k"} <= {i.name for i in e.space}
        assert (e.domain == back.mask) == runs_over_pairs


def test_a_maximum_is_held_fixed_only_where_it_cancels() -> None:
    """In a softmax and in a log-sum-exp it does; in a plain maximum or an unnormalised sum it does not."""
    shifted = "m[q] = max[k] A[q,k]\nX[q,k] = A[q,k] - m[q]\n"
    raised = shifted + "E[q,k] = exp(X[q,k])\n"
    cancels = {
        raised + "l[q] = sum[k] E[q,k]\nZ[q,k] = E[q,k] / l[q]": True,
        raised + "l[q] = sum[k] E[q,k]\nn[q] = log(l[q])\nZ[q] = m[q] + n[q]": True,
        raised + "Z[q] = sum[k] E[q,k]": False,
        "Z[q] = max[k] A[q,k]": False,
        raised + "l[k] = sum[q] E[q,k]\nZ[q,k] = E[q,k] / l[k]": False,
        shifted + "x[q] = sum[k] X[q,k]\nZ[q] = x[q] + m[q]": False,
        raised
        + "Y[q,k] = m[q] - A[q,k]\nF[q,k] = exp(Y[q,k])\nG[q,k] = E[q,k] * F[q,k]\nZ[q,k] = G[q,k] * A[q,k]": True,
        raised + "G[q,k] = E[q,k] * E[q,k]\nZ[q,k] = G[q,k] / E[q,k]": False,
    }
    for text, expected in cancels.items():
        graph = cascade(text, SMALL, outputs=("Z",), width=b)
        maximum = next(e for e in graph.einsums if e.reduce is Reduce.MAX)
        assert shift_cancels(graph, maximum) is expected, text
        if expected:
            assert_right(graph, {"N_q": 3, "N_k": 4, "d_v": 1})
        else:
            with pytest.raises(IllFormedError, match="the outputs change with this maximum"):
                differentiate(graph)


def test_an_input_that_no_output_depends_on_is_named() -> None:
    """It has no gradient."""
    graph = cascade("Y[q] = exp(A[q])\nZ[q] = exp(B[q])", SMALL, outputs=("Z",), width=b)
    with pytest.raises(IllFormedError, match=r"no output depends on the input A\[q\]"):
        differentiate(graph)


def test_shares_of_a_gradient_are_numbered_from_one() -> None:
    """A is read twice: two shares with names of their own, and their sum, which is the gradient."""
    graph = cascade("X[q,k] = exp(A[q,k])\nZ[q,k] = X[q,k] * A[q,k]", SMALL, outputs=("Z",), width=b)
    back = differentiate(graph)
    assert {"dA_1", "dA_2", "dA"} <= set(back.producers)

"""Graphs run on numbers, against attention written plainly with np.exp."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.einsum import Map, Reduce
from derive.errors import DomainError, UnboundError
from derive.evaluate import evaluate, intervals, kept_pairs, number, random_inputs, sizes, whole
from derive.mask import causal
from derive.masks import MASKS, Pattern
from derive.notation import cascade
from derive.operators import MAPS, REDUCES
from derive.symbols import B_r, M, N_k, N_q, b, d, h, h_k
from rules.schedule.examples import streaming, three_pass, two_pass
from tests.seen import seen
from tests.strategies import shapes, variants

Array = npt.NDArray[np.float64]
SMALL = {"N_q": 3, "N_k": 4, "d": 2, "d_v": 3, "h": 2, "h_k": 1, "B": 2}


def plain_attention(q: Array, k: Array, v: Array, scale: float, seen: npt.NDArray[np.bool_]) -> Array:
    """One head, row by row: the weighted mean of the values that a query sees; 0 where it sees none."""
    result = np.zeros((len(q), v.shape[1]))
    for row in range(len(q)):
        weights = np.array([np.exp(scale * np.dot(q[row], key)) for key in k])[seen[row]]
        if len(weights):
            result[row] = weights @ v[seen[row]] / weights.sum()
    return result


def reference(name: str, mask: str, inputs: dict[str, Array], scale: float, numbers: dict[str, int]) -> Array:
    """Every head of every sequence by ``plain_attention``, shaped like the variant's O."""
    q, k, v = inputs["Q"], inputs["K"], inputs["V"]
    heads = q.shape[1:-2]
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for at in np.ndindex(q.shape[0], *heads):
        shared = {"mha": at, "cross": at, "mqa": at[:1]}.get(name, at[:2])
        kept = seen(Pattern(mask), q.shape[-2], k.shape[-2], numbers)
        out[at] = plain_attention(q[at], k[shared], v[shared], scale, kept)
    return out


@settings(max_examples=60)
@given(name=variants, mask=st.sampled_from(MASKS), numbers=shapes())
def test_every_variant_is_attention(name: str, mask: str, numbers: dict[str, int]) -> None:
    """Masks, groups, N_q unlike N_k and d unlike d_v included."""
    graph = variant(name).graph(mask)
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    found = evaluate(graph, inputs, {"c": 0.7}, numbers)["O"]
    np.testing.assert_allclose(found, reference(name, mask, inputs, 0.7, numbers), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("rewritten", [streaming, two_pass, three_pass])
def test_opened_softmaxes_have_the_same_value(rewritten: object, mask: str) -> None:
    """Rescaling does not change the value of a sum, nor does the shift by the maximum."""
    graph = rewritten(mask)  # type: ignore[operator]
    inputs = random_inputs(graph, SMALL, np.random.default_rng(1))
    whole_softmax = evaluate(variant("mha").graph(mask), inputs, {"c": 1.0}, SMALL)
    np.testing.assert_allclose(evaluate(graph, inputs, {"c": 1.0}, SMALL)["O"], whole_softmax["O"], rtol=1e-12)


def test_a_query_that_sees_no_key_gets_zeros() -> None:
    """5 queries on 2 keys, bottom-right: the first 3 see none, and nothing is NaN."""
    graph = streaming("causal")
    numbers = {**SMALL, "N_q": 5, "N_k": 2}
    found = evaluate(graph, random_inputs(graph, numbers, np.random.default_rng(2)), {"c": 1.0}, numbers)
    assert (found["O"][:, :, :3] == 0).all()
    assert (found["m"][:, :, :3] == -np.inf).all()
    assert (found["l"][:, :, :3] == 0).all()
    assert not any(np.isnan(a).any() for a in found.values())
    assert (found["O"][:, :, 3:] != 0).all()


def test_large_scores_do_not_overflow() -> None:
    """The shifted softmax of (1000, 1000) is (1/2, 1/2)."""
    graph = cascade("P[q,k] = softmax(S[q,k])", {"q": N_q, "k": N_k}, outputs=("P",), width=b)
    assert evaluate(graph, {"S": np.full((1, 2), 1000.0)})["P"].tolist() == [[0.5, 0.5]]


def test_scores_of_minus_infinity_weigh_nothing() -> None:
    """An additive mask: exp(-inf) is 0, and a row of -inf is a row of zeros."""
    graph = cascade("P[q,k] = softmax(S[q,k])", {"q": N_q, "k": N_k}, outputs=("P",), width=b)
    scores = np.array([[0.0, -np.inf], [-np.inf, -np.inf]])
    assert evaluate(graph, {"S": scores})["P"].tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Y[q,k] = A[q,k] * x[k]", [[10, 40], [30, 80]]),
        ("Y[q,k] = A[q,k] + x[k]", [[11, 22], [13, 24]]),
        ("Y[q,k] = A[q,k] - x[k]", [[-9, -18], [-7, -16]]),
        ("Y[q,k] = A[q,k] / x[k]", [[0.1, 0.1], [0.3, 0.2]]),
        ("Y[k,q] = A[q,k]", [[1, 3], [2, 4]]),
        ("Y[q] = sum[k] A[q,k]", [3, 7]),
        ("Y[k] = max[q] A[q,k]", [3, 4]),
        ("Y[q] = sum[k] A[q,k] * x[k]", [50, 110]),
        ("Y[q,k] = A[q,k] * c", [[5, 10], [15, 20]]),
    ],
)
def test_each_operator_by_hand(line: str, expected: object) -> None:
    """A = (1 2; 3 4), x = (10, 20), c = 5."""
    graph = cascade(line, {"q": N_q, "k": N_k}, outputs=("Y",), width=b)
    given_arrays = {"A": np.array([[1.0, 2], [3, 4]]), "x": np.array([10.0, 20])}
    assert evaluate(graph, given_arrays, {"c": 5})["Y"].tolist() == expected


def test_a_copy_repeats_along_an_index_its_input_lacks() -> None:
    """K_rep[r, k] = K[k] for each of the 3 heads r."""
    text = """
        K_rep[r,k] = K[k]
        S[r] = sum[k] K_rep[r,k] * Q[r,k]
    """
    graph = cascade(text, {"r": h, "k": N_k}, outputs=("S", "K_rep"), width=b)
    found = evaluate(graph, {"K": np.array([1.0, 2]), "Q": np.ones((3, 2))})
    assert found["K_rep"].tolist() == [[1, 2]] * 3
    assert found["S"].tolist() == [3, 3, 3]


def test_points_outside_the_domain_are_zero_and_are_not_summed() -> None:
    """Causal 2 x 2 of ones: E has a 0 above the diagonal, and rows sum to 1 and 2."""
    text = """
        E[q,k] = A[q,k]
        l[q] = sum[k] A[q,k]
        m[q] = max[k] A[q,k]
    """
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("E", "l", "m"), width=b, mask=causal(N_q, N_k))
    found = evaluate(graph, {"A": np.array([[1.0, 9], [1, 1]])})
    assert found["E"].tolist() == [[1, 0], [1, 1]]
    assert found["l"].tolist() == [1, 2]
    assert found["m"].tolist() == [1, 1]


def test_tables_cover_every_operator() -> None:
    """A new operator without a meaning is noticed here."""
    assert set(MAPS) == set(Map)
    assert set(REDUCES) == set(Reduce)


def test_softmax_runs_along_the_last_index_of_its_result() -> None:
    """Where the result's indices are in another order, its last one is normalised."""
    graph = cascade("P[k,q] = softmax(S[q,k])", {"q": N_q, "k": N_k}, outputs=("P",), width=b)
    found = evaluate(graph, {"S": np.arange(6.0).reshape(2, 3)})["P"]
    np.testing.assert_allclose(found.sum(axis=1), np.ones(3))


def test_extents_are_computed_exactly() -> None:
    """Ceilings, quotients, minima and maxima of whole numbers, without a float."""
    numbers = {"M": 116736, "d": 128, "h": 6, "h_k": 2, "N_q": 7, "B_r": 3}
    assert number(sp.ceiling(M / (4 * d)), numbers) == 228
    assert number(h / h_k, numbers) == 3
    assert number(sp.Min(M, d) + sp.Max(h, N_q) - 1, numbers) == 134
    assert number(N_q / B_r, numbers) == Fraction(7, 3)
    assert number(sp.floor(N_q / B_r), numbers) == 2
    assert sizes(variant("gqa").graph(), {**SMALL, "h": 6, "h_k": 2})["r"] == 3


def test_intervals_follow_the_definition() -> None:
    """Bottom-right causal, 3 queries and 2 keys: none, key 0, keys 0 and 1."""
    assert intervals(causal(N_q, N_k), {"N_q": 3, "N_k": 2}) == [[(0, -1)], [(0, 0)], [(0, 1)]]
    assert kept_pairs(causal(N_q, N_k), {"N_q": 3, "N_k": 2}).tolist() == [[False, False], [True, False], [True, True]]
    assert intervals(causal(N_q, N_k, align="top-left"), {"N_q": 3, "N_k": 2}) == [[(0, 0)], [(0, 1)], [(0, 1)]]


def test_what_is_missing_or_does_not_fit_is_named() -> None:
    """An input or a scalar without a value, two extents of one index, a rank, and a fraction of a head."""
    graph = variant("mha").graph()
    inputs = random_inputs(graph, SMALL, np.random.default_rng(3))
    with pytest.raises(UnboundError, match="c has no value"):
        evaluate(graph, inputs)
    with pytest.raises(UnboundError, match=r"V\[b, h, k, e\] has no value"):
        evaluate(graph, {name: a for name, a in inputs.items() if name != "V"}, {"c": 1})
    with pytest.raises(DomainError, match=r"V\[b, h, k, e\] has 9 for k, another input has 4"):
        evaluate(graph, {**inputs, "V": np.zeros((2, 2, 9, 3))}, {"c": 1})
    with pytest.raises(DomainError, match="has 4 indices, its array has shape"):
        evaluate(graph, {**inputs, "V": np.zeros((4, 3))}, {"c": 1})
    with pytest.raises(DomainError, match="h/h_k is 3/2, no whole number"):
        whole(h / h_k, {"h": 3, "h_k": 2})
    with pytest.raises(DomainError, match="is no operator of an extent"):
        number(sp.log(N_q), {"N_q": 2})


def test_a_whole_number_is_an_int_and_a_share_a_fraction() -> None:
    """Extents are counted with, so that they are Python's own integers."""
    whole, share = (number(x, {"N_q": 6}) for x in (N_q / 3 + 2, N_q / 4))
    assert (whole, share) == (4, Fraction(3, 2))
    assert [type(number(sp.Integer(n), {})) for n in (0, 7)] == [int, int]

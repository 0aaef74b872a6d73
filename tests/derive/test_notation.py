"""Einsum notation: what is read from a line, and which lines are refused."""

import pytest

from derive.einsum import Map, Reduce
from derive.errors import IllFormedError
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.symbols import N_k, N_q, b, b_s, d

SIZES = {"q": N_q, "k": N_k, "d": d}


def read(text: str, outputs: tuple[str, ...] = ("Y",)) -> Graph:
    """The graph that *text* writes."""
    return cascade(text, SIZES, outputs=outputs, width=b, widths={"S": b_s})


@pytest.mark.parametrize(
    ("line", "operator", "reduce"),
    [
        ("Y[q,k] = A[q,k]", Map.COPY, None),
        ("Y[q,k] = A[q,k] * x[k]", Map.MUL, None),
        ("Y[q,k] = A[q,k] + x[k]", Map.ADD, None),
        ("Y[q,k]=A[q,k]-x[k]", Map.SUB, None),
        ("Y[q,k] = A[q,k] / x[k]", Map.DIV, None),
        ("Y[q,k] = exp(A[q,k])", Map.EXP, None),
        ("Y[q,k] = softmax(A[q,k])", Map.SOFTMAX, None),
        ("Y[q] = sum[k] A[q,k]", Map.COPY, Reduce.SUM),
        ("Y[q] = max[k] exp(A[q,k])", Map.EXP, Reduce.MAX),
        ("Y[q, k] = sum[ d ] A[q, d] * x[k, d]", Map.MUL, Reduce.SUM),
        ("Y = sum[q,k] A[q,k]", Map.COPY, Reduce.SUM),
    ],
)
def test_each_form_is_read(line: str, operator: Map, reduce: Reduce | None) -> None:
    """One operator, and perhaps a reduction before it."""
    (einsum,) = read(line).einsums
    assert (einsum.map, einsum.reduce) == (operator, reduce)


def test_widths_are_given_by_name() -> None:
    """S has its own, all others the common one."""
    graph = read("S[q,k] = sum[d] Q[q,d] * K[k,d]\n\nY[q,k] = S[q,k] * c")
    assert {name: t.width for name, t in graph.tensors.items()} == {"Q": b, "K": b, "S": b_s, "c": b, "Y": b}


def test_a_mask_is_the_domain_of_what_runs_over_both_of_its_indices() -> None:
    """A sum over k alone has no query to be masked for."""
    text = """
        x[k] = sum[d] K[k,d]
        Y[q] = sum[k] A[q,k] * x[k]
    """
    graph = cascade(text, SIZES, outputs=("Y",), width=b, mask=causal(N_q, N_k))
    assert [e.domain is not None for e in graph.einsums] == [False, True]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Y[q,k]", "is no Einsum; write e.g. "),
        ("Y[q,k] == A[q,k]", r"is none of A \* B"),
        ("Y[q,k] = A[q,k] * B[q,k] * C[q,k]", r"is none of A \* B"),
        ("Y[q,k] = tan(A[q,k])", r"is none of A \* B"),
        ("Y[q,k] = __import__('os')", r"is none of A \* B"),
        ("Y[q,z] = A[q,z]", r"\[q,z\]: index z has no extent; the extents given are \['q', 'k', 'd'\]"),
        ("Y[q] = sum[d] A[q,k]", r"reduces \['k'\], not \['d'\]"),
        ("Y[q] = sum[k,d] A[q,k]", r"reduces \['k'\], not \['d', 'k'\]"),
        ("Y[q] = A[q,k]", "name the operator"),
        ("Z[q,k] = A[q,k]", "the output Y is defined by no Einsum"),
    ],
)
def test_what_is_no_einsum_is_refused(line: str, message: str) -> None:
    """The message quotes the line or says what is missing."""
    with pytest.raises(IllFormedError, match=message):
        read(line)

"""Graphs as expressions: elements proved equal, equations printed."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from derive.attention import variant
from derive.denote import MAPS, RANGES, TERMS, denote, equal, equation
from derive.differentiate import differentiate
from derive.einsum import Map, Reduce
from derive.errors import UnboundError
from derive.evaluate import evaluate, kept_pairs, random_inputs
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.rewrite import Rule, apply_once
from derive.symbols import N_k, N_q, b, d
from rules.algebra import defer_division
from rules.catalogue import ALGEBRA
from rules.schedule.examples import streaming
from tests.rules.meaning import small_extents

A = sp.IndexedBase("A", real=True)
X = sp.IndexedBase("x", real=True)


@pytest.mark.parametrize("mask", [None, causal(N_q, N_k, align="top-left")], ids=["full", "causal-tl"])
def test_the_softmax_s_gradient_is_sympy_s_derivative(mask: object) -> None:
    """The Jacobian of one row, against SymPy's own differentiation of sum dP softmax(S)."""
    extents, sizes = {"q": 2, "k": 3}, {"q": N_q, "k": N_k}
    forward = cascade("P[q,k] = softmax(S[q,k])", sizes, outputs=("P",), width=b, mask=mask)  # type: ignore[arg-type]
    back = differentiate(forward)
    assert [e.map for e in back.einsums] == [Map.SOFTMAX_GRADIENT]
    probabilities, found = denote(forward, "P", extents), denote(back, "dS", extents)
    scores, gradient = (sp.IndexedBase(name, real=True) for name in ("S", "dP"))
    loss = sp.Add(*(gradient[at] * p for at, p in probabilities.items()))
    for at, entry in found.items():
        assert equal(entry, loss.diff(scores[at]))


def test_tables_cover_every_operator() -> None:
    """A new operator without a meaning is noticed here."""
    assert set(MAPS) == set(Map)
    assert set(TERMS) == set(RANGES) == set(Reduce)


def test_a_product_is_written_out_element_by_element() -> None:
    """A 2 x 2 matrix times a vector."""
    graph = cascade("y[q] = sum[k] A[q,k] * x[k]", {"q": N_q, "k": N_k}, outputs=("y",), width=b)
    assert denote(graph, "y", {"q": 2, "k": 2}) == {
        (0,): A[0, 0] * X[0] + A[0, 1] * X[1],
        (1,): A[1, 0] * X[0] + A[1, 1] * X[1],
    }


def test_a_softmax_is_written_out_with_its_row() -> None:
    """exp(a) / (exp(a) + exp(b))."""
    graph = cascade("P[q,k] = softmax(A[q,k])", {"q": N_q, "k": N_k}, outputs=("P",), width=b)
    first, second = sp.exp(A[0, 0]), sp.exp(A[0, 1])
    assert denote(graph, "P", {"q": 1, "k": 2})[0, 1] == second / (first + second)


@pytest.mark.parametrize("rule", ALGEBRA, ids=str)
@pytest.mark.parametrize("extent", [1, 2, 3])
def test_algebra_rules_keep_every_element(rule: Rule[Graph], extent: int) -> None:
    """SymPy proves before = after at small extents with generic entries."""
    before = rule.example()
    after = apply_once(rule, before).after
    assert isinstance(after, Graph)
    whole, parts = small_extents(before, after, extent)
    for name in before.outputs:
        wanted, found = denote(before, name, whole), denote(after, name, parts)
        assert wanted.keys() == found.keys()
        assert all(equal(wanted[at], found[at]) for at in wanted)


@pytest.mark.parametrize("mask", ["full", "causal", "causal-tl"])
def test_streamed_attention_is_attention(mask: str) -> None:
    """Three rewritings in a row, proved at 3 queries and 3 keys; the rescaling is really written out."""
    extents = {"b": 1, "h": 1, "q": 3, "k": 3, "d": 1, "e": 1}
    wanted, found = denote(variant("mha").graph(mask), "O", extents), denote(streaming(mask), "O", extents)
    assert all(equal(wanted[at], found[at]) for at in wanted)
    total = denote(streaming(), "l", extents)[0, 0, 0]
    assert len({node for node in sp.preorder_traversal(total) if isinstance(node, sp.Max)}) == 2


def test_a_sum_that_forgets_the_rescaling_is_not_equal() -> None:
    """Relative to the final maximum and relative to nothing are two values."""
    graph = streaming()
    extents = dict.fromkeys(graph.indices, 1) | {"k": 2}
    good = denote(graph, "l", extents)[0, 0, 0]
    unrepaired = sp.exp(0) + sp.exp(0)
    assert not equal(good, unrepaired)


def test_a_query_without_keys_is_zero() -> None:
    """2 queries, 1 key, bottom-right: the first sees none, the second gets V."""
    extents = {"b": 1, "h": 1, "q": 2, "k": 1, "d": 1, "e": 1}
    found = denote(streaming("causal"), "O", extents)
    assert found[0, 0, 0, 0] == 0
    assert found[0, 0, 1, 0] == sp.IndexedBase("V", real=True)[0, 0, 0, 0]


def test_masked_points_are_left_out_of_sums_and_maxima() -> None:
    """Causal, 2 x 2: the first row has one term, the second two."""
    text = """
        l[q] = sum[k] A[q,k]
        m[q] = max[k] A[q,k]
    """
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("l", "m"), width=b, mask=causal(N_q, N_k))
    extents = {"q": 2, "k": 2}
    assert denote(graph, "l", extents) == {(0,): A[0, 0], (1,): A[1, 0] + A[1, 1]}
    assert denote(graph, "m", extents) == {(0,): A[0, 0], (1,): sp.Max(A[1, 0], A[1, 1])}


def test_expressions_and_numbers_agree() -> None:
    """The elements of O with numbers put in are what the graph evaluates to."""
    graph = streaming("causal")
    numbers = {"N_q": 2, "N_k": 3, "d": 2, "d_v": 1, "h": 1, "B": 1}
    extents = {"b": 1, "h": 1, "q": 2, "k": 3, "d": 2, "e": 1}
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    wanted = evaluate(graph, inputs, {"c": 0.5}, numbers)["O"]
    for at, expression in denote(graph, "O", extents).items():
        entries = {e: inputs[str(e.base)][tuple(map(int, e.indices))] for e in expression.atoms(sp.Indexed)}
        scalars = {s: 0.5 for s in expression.free_symbols if s.name == "c"}
        assert float(expression.subs({**entries, **scalars})) == pytest.approx(wanted[at], rel=1e-12)


def test_an_index_without_extent_is_named() -> None:
    """The message says which."""
    with pytest.raises(UnboundError, match="index k has no extent"):
        denote(streaming(), "O", {"b": 1, "h": 1, "q": 1, "d": 1, "e": 1})


def latex(graph: Graph, name: str) -> str:
    """The right side of its equation."""
    return str(sp.latex(equation(graph, name).rhs))


def test_deferred_division_prints_as_in_the_paper() -> None:
    """The quotient moves out of the sum."""
    before = defer_division.RULE.example()
    after = apply_once(defer_division.RULE, before).after
    assert isinstance(after, Graph)
    assert latex(before, "O") == r"\sum_{k=0}^{N_{k} - 1} \frac{{A}_{q,k} {V}_{k,e}}{{l}_{q}}"
    assert latex(after, "O") == r"\frac{\sum_{k=0}^{N_{k} - 1} {A}_{q,k} {V}_{k,e}}{{l}_{q}}"


def test_a_mask_bounds_the_sum() -> None:
    """Causal: the sum over k ends at the query's last key, and inner sums have variables of their own."""
    found = equation(variant("mha").graph("causal"), "O", keep=("P",))
    assert found.lhs == sp.IndexedBase("O", real=True)[sp.symbols("b h' q e", integer=True, nonnegative=True)]
    assert isinstance(found.rhs, sp.Sum)
    variable, first, last = found.rhs.limits[0]
    assert (variable.name, first) == ("k", 0)
    row = sp.Symbol("q", integer=True, nonnegative=True)
    assert last == sp.Min(N_k - 1, row + N_k - N_q)


def test_an_elementwise_result_is_zero_outside_the_mask() -> None:
    """A piecewise equation with the mask as its condition."""
    graph = variant("mha").graph("causal-tl")
    assert isinstance(equation(graph, "P", keep=("S",)).rhs, sp.Piecewise)


def test_no_variable_means_two_things() -> None:
    """Bound variables of nested sums differ, and none is called like an extent (an index d runs to the symbol d)."""
    right = equation(streaming(), "O").rhs
    for node in sp.preorder_traversal(right):
        if isinstance(node, sp.Sum):
            outer = {v.name for v, *_ in node.limits}
            inner = {
                v.name for s in sp.preorder_traversal(node.function) if isinstance(s, sp.Sum) for v, *_ in s.limits
            }
            assert not outer & inner
            assert d.name not in outer | inner


def test_an_elementwise_operation_has_an_equation() -> None:
    """The right side is the operation on the inputs' entries."""
    graph = cascade("y[q,k] = A[q,k] - x[k]", {"q": N_q, "k": N_k}, outputs=("y",), width=b)
    q, k = sp.symbols("q k", integer=True, nonnegative=True)
    assert equation(graph, "y") == sp.Eq(sp.IndexedBase("y", real=True)[q, k], A[q, k] - X[k], evaluate=False)


def test_each_row_of_a_union_sums_over_the_keys_that_it_sees() -> None:
    """Global tokens: the first queries see all keys, the others the global ones and a window; the terms are counted."""
    graph = variant("mha").graph("global-local")
    sums = sp.Add.make_args(equation(graph, "O", keep=("P",)).rhs)
    sizes = {"N_q": 7, "N_k": 7, "N_g": 2, "W_l": 1, "W_r": 1}
    assert graph.mask is not None
    for row, kept in enumerate(kept_pairs(graph.mask, sizes).sum(1)):
        at = {s: {**sizes, "q": row}[s.name] for total in sums for s in total.free_symbols if s.name in {*sizes, "q"}}
        ends = [(first.subs(at), last.subs(at)) for total in sums for _, first, last in total.limits]
        assert sum(max(0, last - first + 1) for first, last in ends) == kept


def test_a_softmax_and_its_gradient_sum_over_the_last_index() -> None:
    """In closed form: exp(S) over the row's sum of them, and P (dP - sum_k P dP), a row's entries written out."""
    graph = cascade("P[q,k] = softmax(S[q,k])", {"q": N_q, "k": N_k}, outputs=("P",), width=b)
    back = differentiate(graph)
    (name,) = (n for n in back.outputs if n.startswith("dS"))
    for found in (equation(graph, "P").rhs, equation(back, name).rhs):
        (total,) = found.atoms(sp.Sum)
        (variable, first, last), *none = total.limits
        assert variable.name.startswith("k")
        assert (first, last, none) == (0, N_k - 1, [])

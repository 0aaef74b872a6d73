"""Selection: the largest of a row, rows at positions, and what both cost, against NumPy and hand counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.cache import cached
from derive.conversion import multiplied
from derive.cost import Move
from derive.denote import denote, equation
from derive.einsum import Map
from derive.errors import BadValueError, DomainError, IllFormedError
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.flops import Pipe, flops
from derive.footprint import Place, kernel_footprint, tiles_by_place
from derive.graph import Graph
from derive.lru import replay_cache
from derive.mask import causal
from derive.notation import cascade
from derive.operators import Array
from derive.residency import dram
from derive.schedule import Kernel, Loop, Schedule, lift
from derive.symbols import N_k, N_q, b, d, h, n_t
from derive.traffic import compulsory, traffic
from outputs.request import read_request
from rules.derivations import plan
from rules.schedule.keep_resident import eligible
from tests.rules.meaning import counted, walked
from tests.strategies import PAIRS, fitted, shapes

SIZES = {"h": h, "q": N_q, "j": N_k, "k": n_t, "d": d}
SPARSE = [pair for pair in PAIRS if any(e.map.is_selection for e in variant(pair[0]).graph().einsums)]
SCALARS = {"c": 0.7}


def small(text: str, output: str) -> Graph:
    """A cascade over few indices."""
    return cascade(text, SIZES, outputs=(output,), width=b)


GATHERED = "G[q,k,d] = gather(C[j,d], T[q,k])\nS[h,q,k] = sum[d] Q[h,q,d] * G[q,k,d]"


def softmax(scores: Array) -> Array:
    """Along the last axis."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def topk(i: dict[str, Array], _: int) -> Array:
    """Query by query, head by head, over the rows that its positions name."""
    q, k, v, t = i["Q"], i["K"], i["V"], i["T"].astype(int)
    found = np.zeros((*q.shape[:-1], v.shape[-1]))
    for at in np.ndindex(*q.shape[:-1]):
        sequence, group, _head, query = at
        rows = t[sequence, group, query]
        found[at] = softmax(0.7 * k[sequence, group, rows] @ q[at]) @ v[sequence, group, rows]
    return found


def dsa(i: dict[str, Array], count: int) -> Array:
    """Index scores I = sum over heads of w relu(q k), the best keys, and attention over their latents."""
    q, rope = i["Q"], i["Q_rope"]
    found = np.zeros(q.shape)
    for sequence, query in np.ndindex(q.shape[0], q.shape[2]):
        scores = np.maximum(i["Q_I"][sequence, :, query] @ i["K_I"][sequence].T, 0.0)
        best = np.argsort(-(i["w"][sequence, query] @ scores), kind="stable")[:count]
        c, k = i["C"][sequence, best], i["K_rope"][sequence, best]
        found[sequence, :, query] = softmax(0.7 * (q[sequence, :, query] @ c.T + rope[sequence, :, query] @ k.T)) @ c
    return found


PLAIN: dict[str, Callable[[dict[str, Array], int], Array]] = {"topk": topk, "dsa": dsa}


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(sorted(PLAIN)), numbers=shapes())
def test_a_sparse_variant_is_what_its_paper_says(name: str, numbers: dict[str, int]) -> None:
    """Against loops over queries, at any shape; all keys selected is attention over all of them, in another order."""
    graph, numbers = variant(name).graph(), fitted(name, numbers)
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    found = evaluate(graph, inputs, SCALARS, numbers)["O"]
    np.testing.assert_allclose(found, PLAIN[name](inputs, numbers["n_t"]), rtol=1e-9, atol=1e-11)


def test_all_keys_selected_is_attention_over_all_keys() -> None:
    """The order of keys changes nothing."""
    numbers = {"N_q": 3, "N_k": 6, "n_t": 6, "d": 2, "d_v": 3, "h": 4, "h_k": 2, "B": 2}
    graph = variant("topk").graph()
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    dense = {name: array for name, array in inputs.items() if name != "T"}
    wanted = evaluate(variant("gqa").graph(), dense, SCALARS, numbers)["O"]
    np.testing.assert_allclose(evaluate(graph, inputs, SCALARS, numbers)["O"], wanted, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(pair=st.sampled_from(SPARSE), numbers=shapes())
def test_every_schedule_computes_and_counts_a_selection(pair: tuple[str, str], numbers: dict[str, int]) -> None:
    """Tile by tile the values are the graph's; the closed form of traffic is the walker's count."""
    numbers = fitted(pair[0], numbers) | {"M": 64}
    made = plan(pair[1]).derive(variant(pair[0]).graph())
    inputs = random_inputs(made.start, numbers, np.random.default_rng(0))
    found, wanted = execute(made.schedule, inputs, SCALARS, numbers), evaluate(made.start, inputs, SCALARS, numbers)
    np.testing.assert_allclose(found["O"], wanted["O"], rtol=1e-9, atol=1e-11)
    assert counted(made.schedule, numbers) == walked(made.schedule, numbers)


def test_the_largest_come_first_and_equal_ones_in_order() -> None:
    """Positions, and the rows that stand there."""
    graph = small("T[q,k] = top(X[q,j])\nG[q,k,d] = gather(C[j,d], T[q,k])", "G")
    scores = np.array([[1.0, 5.0, 3.0, 5.0]])
    rows = np.arange(8.0).reshape(4, 2)
    found = evaluate(graph, {"X": scores, "C": rows}, {}, {"n_t": 3})
    assert found["T"].tolist() == [[1.0, 3.0, 2.0]]
    assert found["G"].tolist() == [rows[[1, 3, 2]].tolist()]


def test_relu_is_the_larger_of_a_number_and_zero() -> None:
    """One operation a point on the vector pipe."""
    graph = small("R[q] = relu(X[q])", "R")
    assert evaluate(graph, {"X": np.array([-2.0, 3.0])}, {}, {})["R"].tolist() == [0.0, 3.0]
    assert flops(graph)[Pipe.VECTOR].amount == N_q
    assert denote(graph, "R", {"q": 1})[0,] == sp.Max(0, sp.IndexedBase("X", real=True)[0])


def test_too_many_and_impossible_positions_are_refused() -> None:
    """Values that no memory holds are no values."""
    top = small("T[q,k] = top(X[q,j])", "T")
    with pytest.raises(DomainError, match="3 of 2 along j cannot be selected"):
        evaluate(top, {"X": np.zeros((1, 2))}, {}, {"n_t": 3})
    gather = small(GATHERED, "S")
    rest = {"C": np.zeros((4, 2)), "Q": np.zeros((1, 1, 2))}
    for wrong in (4.0, -1.0, 0.5):
        with pytest.raises(DomainError, match=r"positions are whole numbers from 0 to 3; got"):
            evaluate(gather, {"T": np.array([[wrong]]), **rest}, {}, {})
    with pytest.raises(DomainError, match="9 distinct positions among 4 rows"):
        random_inputs(gather, {"N_q": 1, "N_k": 4, "n_t": 9, "d": 1, "h": 1}, np.random.default_rng(0))


@pytest.mark.parametrize(
    "line",
    [
        "T[q] = top(X[q,j])",
        "T[q,k] = top(X[q,k])",
        "T[q,k] = top(X[q,j,d])",
        "G[q,k] = gather(C[j,d], T[q,k])",
        "G[q,k,d] = gather(C[d], T[q,k])",
        "G[h,q,k,d] = gather(C[j,d], T[q,k])",
    ],
)
def test_a_selection_puts_one_index_in_the_place_of_one(line: str) -> None:
    """Neither more nor fewer, and nothing out of nowhere."""
    with pytest.raises(IllFormedError, match=r"kept under another one|in the place of one index"):
        small(line, line[0])


def test_a_mask_of_a_top_is_over_what_it_looks_through() -> None:
    """One over its result says nothing of which keys there are to select from."""
    text = "T[q,k] = top(X[q,j])"
    (top,) = cascade(text, SIZES, outputs=("T",), width=b, mask=causal(N_q, N_k, column="j")).einsums
    assert top.domain is not None
    with pytest.raises(IllFormedError, match="so it pairs two of q, j; got q, k"):
        replace(top, domain=causal(N_q, n_t))
    pairs = cascade("T[q,k] = top(X[q,j])\n" + GATHERED, SIZES, outputs=("S",), width=b, mask=causal(N_q, n_t))
    assert [e.domain is None for e in pairs.einsums] == [True, False, False]


def test_what_is_selected_from_stays_whole() -> None:
    """No loop cuts it, and it is in memory before its rows are gathered."""
    graph = small(GATHERED, "S")
    names = tuple(e.output.name for e in graph.einsums)
    with pytest.raises(IllFormedError, match=r"selects along j; for j by 1 would cut it"):
        Schedule(graph, (Kernel(names, (Loop((graph.indices["j"],), sp.Integer(1)),)),))
    made = small("C[j,d] = exp(A[j,d])\n" + GATHERED, "S")
    with pytest.raises(IllFormedError, match="gathers rows of C, which must be in memory before"):
        Schedule(made, (Kernel(("C", *names)),))


def test_rows_are_read_as_often_as_they_are_gathered() -> None:
    """Two heads apart gather the same rows twice; untiled, once. Positions go with them."""
    graph = small(GATHERED, "S")
    names = tuple(e.output.name for e in graph.einsums)
    heads = Loop((graph.indices["h"],), sp.Integer(1), grid=True)
    once, twice = (traffic(Schedule(graph, (Kernel(names, loops),))).by_tensor for loops in ((), (heads,)))
    assert once["C"] == Move(read=N_q * n_t * d)
    assert twice["C"] == Move(read=h * N_q * n_t * d)
    assert twice["T"] == Move(read=h * N_q * n_t)
    assert "G" not in twice


def test_rows_read_whole_beside_being_gathered_count_both_ways() -> None:
    """A sum over all rows in the same kernel reads all of them once."""
    graph = small(GATHERED + "\nz[d] = sum[j] C[j,d]\nY[h,q,k] = S[h,q,k] + S[h,q,k]", "Y")
    graph = Graph(graph.einsums, ("Y", "z"))
    schedule = Schedule(graph, (Kernel(tuple(e.output.name for e in graph.einsums)),))
    assert traffic(schedule).by_tensor["C"].read == N_q * n_t * d + N_k * d
    assert compulsory(graph).by_tensor["C"].read == N_k * d
    numbers = {"N_q": 2, "N_k": 5, "n_t": 3, "d": 2, "h": 2}
    assert counted(schedule, numbers) == walked(schedule, numbers)


@pytest.mark.parametrize(("queries", "rows"), [(1, 3), (2, 6), (3, 8), (100, 8)])
def test_compulsory_rows_are_those_named_or_all_there_are(queries: int, rows: int) -> None:
    """8 rows, 3 a query, where as few coincide as can."""
    found = compulsory(small(GATHERED, "S")).by_tensor["C"].read
    assert value(found, {"N_q": queries, "N_k": 8, "n_t": 3, "d": 2}) == 2 * rows


def test_a_tile_of_rows_stands_where_what_they_are_rows_of_would() -> None:
    """Shared memory holds B_r B_c rows and not N_k of them."""
    schedule = plan("per-query").derive(variant("topk").graph()).schedule
    (kernel,) = schedule.kernels
    staged = {t.name for t in tiles_by_place(schedule, kernel)[Place.SHARED]}
    assert staged == {"Q", "T", "K_sel", "V_sel"}
    assert N_k not in kernel_footprint(schedule, kernel).amount.free_symbols


def test_what_a_cache_keeps_of_rows_is_left_open() -> None:
    """HBM sees every gathered row: an upper bound that the replay, which keeps no row, agrees with."""
    schedule = plan("per-query").derive(variant("topk").graph()).schedule
    (kernel,) = schedule.kernels
    assert not {"K", "V", "T"} & set(eligible(schedule, kernel))
    assert dram(schedule).by_tensor["K"] == traffic(schedule).by_tensor["K"]
    lifted = lift(small(GATHERED, "S"))
    numbers = {"N_q": 2, "N_k": 5, "n_t": 3, "d": 2, "h": 2}
    widths = dict.fromkeys(lifted.graph.tensors, sp.Rational(2))
    read, _ = replay_cache(lifted, numbers, running=1, capacity=10**6, widths=widths)["C"]  # type: ignore[arg-type]
    assert read == 2 * 2 * 3 * 2


def test_the_indexer_scores_all_pairs_and_a_top_compares_each_once() -> None:
    """2 hi di a pair on the matrix pipe; relu, weight and sum on the vector pipe, and one comparison."""
    work = flops(plan("per-query").derive(variant("dsa").graph()).schedule.graph)
    index = cascade("T[q,k] = top(X[q,j])", SIZES, outputs=("T",), width=b)
    assert flops(index)[Pipe.VECTOR].amount == N_q * N_k
    mma = work[Pipe.MMA].amount
    pairs = {"N_q": 3, "N_k": 50, "n_t": 7, "h": 2, "d_c": 5, "d_r": 4, "h_i": 6, "d_i": 8, "B": 1}
    assert value(mma, pairs) == 3 * (50 * 2 * 6 * 8 + 7 * 2 * 2 * (5 + 5 + 4))


def test_gathered_rows_are_converted_and_positions_are_not() -> None:
    """An fp8 latent is widened row by row."""
    schedule = plan("per-query").derive(variant("dsa").graph()).schedule
    core = schedule.kernel_of["O"]
    assert {t.name for t in multiplied(schedule, core)} == {"C", "K_rope", "Q", "Q_rope"}


def test_the_cache_is_what_rows_are_selected_from() -> None:
    """The indexer's keys are kept too."""
    assert [t.name for t in cached(variant("dsa").graph())] == ["K_I", "C", "K_rope"]
    assert [t.name for t in cached(variant("topk").graph())] == ["K", "V"]


def test_positions_have_names_in_expressions() -> None:
    """Written out, a gather is a sum over all rows; in closed form it is an index that is an element."""
    graph = small(GATHERED, "S")
    c, t = sp.IndexedBase("C", real=True), sp.IndexedBase("T", real=True)
    found = denote(graph, "G", {"h": 1, "q": 1, "j": 2, "k": 1, "d": 1})[0, 0, 0]
    assert found == sum(sp.KroneckerDelta(t[0, 0], n) * c[n, 0] for n in range(2))
    assert "C[T[q, k], d']" in str(equation(graph, "S").rhs)
    top = small("T[q,k] = top(X[q,j])", "T")
    assert str(denote(top, "T", {"q": 1, "j": 2, "k": 1})[0, 0]) == "top(0, X[0, 0], X[0, 1])"
    assert str(equation(top, "T").rhs) == "top(k, X[q, j], (j, 0, N_k - 1))"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("N=100", "topk=200"), r"topk=200: there cannot be more keys .* than 100, with N=100; give at most 100"),
        (("Nq=1", "Nk=64", "topk=65"), "with Nk=64; give at most 64"),
        (("N=100", "topk=20", "W=5"), "W= is used by mask=window or sinks"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(words: tuple[str, ...], says: str) -> None:
    """The value, and the way out."""
    with pytest.raises(BadValueError, match=says):
        read_request(variant("topk"), words)


def test_topk_with_as_many_keys_as_there_are_is_asked_as_any_other() -> None:
    """The limit itself is allowed."""
    assert read_request(variant("topk"), ("N=100", "topk=100")).numbers["n_t"] == 100


def test_every_selecting_variant_is_tried() -> None:
    """The tests above are about these, each with several schedules."""
    names = {name for name, _ in SPARSE}
    assert names >= {"topk", "dsa"}
    assert {Map.TOP, Map.GATHER} <= {e.map for name in names for e in variant(name).graph().einsums}
    assert {("topk", "per-query"), ("dsa", "per-query"), ("dsa", "naive")} <= set(SPARSE)

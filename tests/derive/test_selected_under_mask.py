"""Keys selected under a causal mask: a query attends to as many as it sees, and an indexer scores no more than those."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.denote import denote, equation
from derive.errors import BadValueError, PreconditionError
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.flops import Pipe, executed, flops
from derive.graph import Graph
from derive.mask import causal
from derive.masks import Pattern
from derive.notation import cascade
from derive.operators import Array
from derive.replay import walk
from derive.replay_arrays import Walker
from derive.symbols import N_k, N_q, b, d, h, n_t
from derive.traffic import compulsory
from rules.derivations import plan
from tests.rules.meaning import counted, walked
from tests.strategies import PAIRS, applies, fitted, shapes

SIZES = {"h": h, "q": N_q, "j": N_k, "k": n_t, "d": d}
SPARSE = [p for p in PAIRS if p[0] in ("topk", "dsa") and applies(*p, "causal")]
SCALARS = {"c": 0.7}
small = st.fixed_dictionaries({"N_q": st.integers(1, 9), "N_k": st.integers(1, 9), "n_t": st.integers(1, 9)})


def limited(numbers: dict[str, int]) -> dict[str, int]:
    """No more places than keys."""
    return numbers | {"n_t": min(numbers["n_t"], numbers["N_k"])}


def seen(numbers: dict[str, int]) -> list[int]:
    """How many keys each query sees, the last query standing on the last key."""
    return [max(0, q + numbers["N_k"] - numbers["N_q"] + 1) for q in range(numbers["N_q"])]


def softmax(scores: Array) -> Array:
    """Along the last axis; of nothing, nothing."""
    weights = np.exp(scores - scores.max(initial=-np.inf))
    return weights / weights.sum() if weights.size else weights


def topk(i: dict[str, Array], numbers: dict[str, int]) -> Array:
    """Query by query, head by head, over the first of its positions, as many as it sees keys."""
    q, k, v, t = i["Q"], i["K"], i["V"], i["T"].astype(int)
    found = np.zeros((*q.shape[:-1], v.shape[-1]))
    for sequence, group, head, query in np.ndindex(*q.shape[:-1]):
        rows = t[sequence, group, query, : seen(numbers)[query]]
        assert set(rows) <= set(range(seen(numbers)[query])), "a position of a key that the query does not see"
        at = sequence, group, head, query
        found[at] = softmax(0.7 * k[sequence, group, rows] @ q[at]) @ v[sequence, group, rows]
    return found


def dsa(i: dict[str, Array], numbers: dict[str, int]) -> Array:
    """Of the keys that a query sees alone, those with the best index scores."""
    q, rope = i["Q"], i["Q_rope"]
    found = np.zeros(q.shape)
    for sequence, query in np.ndindex(q.shape[0], q.shape[2]):
        keys = i["K_I"][sequence, : seen(numbers)[query]]
        scores = i["w"][sequence, query] @ np.maximum(i["Q_I"][sequence, :, query] @ keys.T, 0.0)
        best = np.argsort(-scores, kind="stable")[: numbers["n_t"]]
        c, k = i["C"][sequence, best], i["K_rope"][sequence, best]
        for head in range(q.shape[1]):
            at = sequence, head, query
            found[at] = softmax(0.7 * (c @ q[at] + k @ rope[at])) @ c
    return found


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(("topk", "dsa")), numbers=shapes())
def test_a_query_attends_to_keys_that_it_sees(name: str, numbers: dict[str, int]) -> None:
    """Against loops over queries, at any shape: more queries than keys, fewer keys seen than are to be selected."""
    graph, numbers = variant(name).graph("causal"), fitted(name, numbers)
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    found = evaluate(graph, inputs, SCALARS, numbers)["O"]
    plain = {"topk": topk, "dsa": dsa}[name](inputs, numbers)
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-11)


def test_all_keys_selected_is_causal_attention() -> None:
    """Of as many keys as there are, a query attends to those that it sees; their order changes nothing."""
    numbers = {"N_q": 5, "N_k": 6, "n_t": 6, "d": 2, "d_v": 3, "h": 4, "h_k": 2, "B": 2}
    graph = variant("topk").graph("causal")
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    dense = {name: array for name, array in inputs.items() if name != "T"}
    wanted = evaluate(variant("gqa").graph("causal"), dense, SCALARS, numbers)["O"]
    np.testing.assert_allclose(evaluate(graph, inputs, SCALARS, numbers)["O"], wanted, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(pair=st.sampled_from(SPARSE), numbers=shapes())
def test_every_schedule_computes_and_counts_it(pair: tuple[str, str], numbers: dict[str, int]) -> None:
    """Tile by tile the values are the graph's, traffic and work what either walk counts."""
    numbers = fitted(pair[0], numbers) | {"M": 64}
    made = plan(pair[1]).derive(variant(pair[0]).graph("causal"))
    inputs = random_inputs(made.start, numbers, np.random.default_rng(0))
    found, wanted = execute(made.schedule, inputs, SCALARS, numbers), evaluate(made.start, inputs, SCALARS, numbers)
    np.testing.assert_allclose(found["O"], wanted["O"], rtol=1e-9, atol=1e-11)
    assert counted(made.schedule, numbers) == walked(made.schedule, numbers)
    assert Walker(made.schedule).walk(numbers) == walk(made.schedule, numbers)


@settings(max_examples=60, deadline=None)
@given(numbers=small, tile=st.integers(1, 4))
def test_pairs_and_tiles_are_the_sums_over_queries(numbers: dict[str, int], tile: int) -> None:
    """min(own + 1, topk) pairs a query in the core; own + 1 in the indexer, and whole tiles of both where they run."""
    numbers = limited(numbers) | {"h": 3, "d_c": 2, "d_r": 5, "h_i": 2, "d_i": 7, "B": 1, "B_r": 2, "B_c": tile}
    core = [min(n, numbers["n_t"]) for n in seen(numbers)]
    graph = variant("dsa").graph("causal")
    schedule = plan("per-query").derive(graph).schedule
    assert value(flops(schedule.graph)[Pipe.MMA].amount, numbers) == 2 * (
        2 * 7 * sum(seen(numbers)) + 3 * 9 * sum(core)
    )
    indexed, attended = (sum(tile * ceil(n / tile) for n in counts) for counts in (seen(numbers), core))
    run = value(executed(schedule)[Pipe.MMA].amount, numbers)
    assert run == 2 * (2 * 7 * indexed + 2 * ceil(3 / 2) * 9 * attended)


@settings(max_examples=60, deadline=None)
@given(numbers=small)
def test_compulsory_rows_are_the_most_that_queries_can_select_apart(numbers: dict[str, int]) -> None:
    """A matching of places with keys that their query sees: where as few coincide as can."""
    numbers = limited(numbers)
    places = [(q, t, n) for q, n in enumerate(seen(numbers)) for t in range(min(n, numbers["n_t"]))]
    offers = nx.Graph()
    offers.add_nodes_from(places)
    offers.add_edges_from((place, key) for place in places for key in range(place[2]))
    apart = len(nx.bipartite.maximum_matching(offers, places)) // 2
    found = compulsory(variant("topk").graph("causal")).by_tensor
    sizes = numbers | {"B": 1, "h_k": 1, "h": 1, "d": 2, "d_v": 1}
    assert value(found["K"].read, sizes) == 2 * apart
    assert value(found["T"].read, sizes) == len(places)


def test_places_that_a_mask_leaves_out_name_no_row() -> None:
    """Two queries with one place and with two, among nine rows of two: three rows, and not four."""
    text = "G[q,k,d] = gather(C[j,d], T[q,k])\nS[h,q,k] = sum[d] Q[h,q,d] * G[q,k,d]"
    graph = cascade(text, SIZES, outputs=("S",), width=b, mask=causal(N_q, n_t))
    numbers = {"N_q": 2, "n_t": 2, "N_k": 9, "d": 2, "h": 1}
    assert value(compulsory(graph).by_tensor["C"].read, numbers) == 3 * 2


def test_scores_of_tiles_that_the_mask_empties_are_not_written() -> None:
    """Seven queries and keys in tiles of three: rows of 3, 3, 3, 6, 6, 6 and 7 scores leave the indexer; all come back."""
    schedule = plan("per-query").derive(variant("dsa").graph("causal")).schedule
    numbers = dict.fromkeys(("B", "h", "d_c", "d_r", "h_i", "d_i"), 1) | {"N_q": 7, "N_k": 7, "n_t": 2}
    moves = walk(schedule, numbers | {"B_r": 1, "B_c": 3}).moves
    assert moves["I"] == (49, 34)
    assert counted(schedule, numbers | {"B_r": 1, "B_c": 3})["I"] == (49, 34)


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(("topk", "dsa")), numbers=shapes(), tile=st.integers(1, 3))
def test_per_query_moves_what_either_walk_counts(name: str, numbers: dict[str, int], tile: int) -> None:
    """Tiles short enough that a mask empties some."""
    numbers = fitted(name, numbers) | {"B_c": tile}
    schedule = plan("per-query").derive(variant(name).graph("causal")).schedule
    assert counted(schedule, numbers) == walked(schedule, numbers)
    assert Walker(schedule).walk(numbers) == walk(schedule, numbers)


def test_scores_that_something_else_reads_too_are_all_written() -> None:
    """A top without a mask would select from what no tile has written."""
    graph = variant("dsa").graph("causal")
    unmasked = tuple(replace(e, domain=None) if e.output.name == "T" else e for e in graph.einsums)
    with pytest.raises(PreconditionError, match="leaves the kernel only for Einsums over kept pairs"):
        plan("per-query").derive(replace(graph, einsums=unmasked))


def test_what_a_top_does_not_see_comes_last_whatever_it_is() -> None:
    """Even where nothing wrote it."""
    graph = masked_top()
    scores = np.array([[1.0, np.nan, 9.0], [1.0, 5.0, np.nan], [1.0, 5.0, 3.0]])
    found = evaluate(graph, {"X": scores}, {}, {"n_t": 2})["T"]
    assert [row[: n + 1].tolist() for n, row in enumerate(found)] == [[0.0], [1.0, 0.0], [1.0, 2.0]]


def test_a_top_under_a_mask_in_expressions() -> None:
    """Below everything is what it does not see; in closed form its range ends."""
    graph = masked_top()
    written = denote(graph, "T", {"q": 2, "j": 2, "k": 1})
    assert [str(written[q, 0]) for q in range(2)] == ["top(0, X[0, 0], -oo)", "top(0, X[1, 0], X[1, 1])"]
    assert str(equation(graph, "T").rhs) == "top(k, X[q, j], (j, 0, Min(N_k - 1, N_k - N_q + q)))"


def masked_top() -> Graph:
    """The positions of the largest of the scores that a query sees."""
    mask = causal(N_q, N_k, column="j")
    return cascade("T[q,k] = top(X[q,j])", SIZES, outputs=("T",), width=b, mask=mask)


@pytest.mark.parametrize("mask", ["sinks", "dilated", "global-local"])
def test_another_mask_is_refused(mask: str) -> None:
    """Which places a query uses would follow from how many keys it sees, and not where these stand apart."""
    assert not variant("dsa").takes(mask)
    with pytest.raises(
        BadValueError, match=rf"dsa selects keys under a mask .* such as mask=causal, .*; got mask={mask}"
    ):
        variant("dsa").graph(mask)


def test_a_share_of_tiles_or_a_list_of_blocks_is_refused() -> None:
    """They say how many, or in which blocks; a query's keys need not stand together."""
    for pattern in (Pattern("block-sparse"), Pattern("blocks", frozenset(), (), ((0,), (0, 1)))):
        with pytest.raises(BadValueError, match="keys that stand together, such as mask=causal"):
            variant("topk").graph(pattern)


def test_a_length_of_its_own_for_the_queries_needs_no_square() -> None:
    """One query of a decode step sees all keys: no mask is left of it."""
    numbers = {"N_q": 1, "N_k": 9, "n_t": 4, "h": 1, "h_k": 1, "d": 1, "d_v": 1, "B": 1}
    under = (variant("topk").graph(mask) for mask in ("causal", "full"))
    both = [flops(plan("per-query").derive(g).schedule.graph)[Pipe.MMA].amount for g in under]
    assert value(both[0], numbers) == value(both[1], numbers) == 16
    assert both[0] != both[1]

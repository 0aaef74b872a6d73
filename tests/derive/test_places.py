"""Keys selected under any mask of keys that stand together: a query attends to as many as it sees, each counted by itself."""

from __future__ import annotations

from math import ceil

import networkx as nx
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.coverage import PlacesCoverage, coverage
from derive.errors import DomainError, PreconditionError
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.flops import Pipe, executed, flops
from derive.graph import Graph
from derive.growth.tile_bounds import narrowest, regime_of
from derive.masks import Pattern, patterns
from derive.operators import Array
from derive.places import Places
from derive.replay import walk
from derive.replay_arrays import Walker
from derive.schedule import Loop
from derive.symbols import B_c, B_r, C_k, N_k, N_q, W, n_t
from derive.traffic import compulsory
from rules.derivations import plan
from tests.outputs.command import derive
from tests.rules.meaning import counted, walked
from tests.strategies import fitted, shapes

DOCUMENTS = (3, 1, 5, 2)
TOKENS = sum(DOCUMENTS)
ONE_INTERVAL = tuple(p for p in patterns((DOCUMENTS,)) if (m := p.mask(N_q, N_k)) is not None and m.is_one_interval)
"""Every mask of keys that stand together, in every form and alignment."""
SCALARS = {"c": 0.7}
SIZES = st.fixed_dictionaries(
    {
        "N_q": st.integers(1, 12),
        "N_k": st.integers(1, 12),
        "n_t": st.integers(1, 12),
        "W": st.integers(1, 7),
        "W_l": st.integers(0, 4),
        "W_r": st.integers(0, 4),
        "C_k": st.integers(1, 6),
        "N_p": st.integers(1, 6),
    }
)
masks = st.sampled_from(ONE_INTERVAL)


def at(pattern: Pattern, numbers: dict[str, int]) -> dict[str, int]:
    """The lengths that a list of documents has, and no more places than keys."""
    found = numbers | ({"N_q": TOKENS, "N_k": TOKENS} if pattern.length else {})
    return found | {"n_t": min(found["n_t"], found["N_k"])}


def keys_seen(pattern: Pattern, numbers: dict[str, int]) -> list[list[int]]:
    """The keys of each query, one after another, from what the mask's name means."""
    top_left = pattern.name.endswith("-tl") or bool(pattern.length)
    found = []
    for q in range(numbers["N_q"]):
        own = q if top_left else q + numbers["N_k"] - numbers["N_q"]
        found.append([k for k in range(numbers["N_k"]) if _sees(pattern, own, k, numbers)])
    return found


def _sees(pattern: Pattern, own: int, k: int, n: dict[str, int]) -> bool:
    name = pattern.name.removesuffix("-tl")
    document = np.repeat(range(len(DOCUMENTS)), DOCUMENTS)
    if name == "causal":
        return k <= own
    if name == "prefix":
        return k <= own or k < n["N_p"]
    if name == "chunk":
        return k <= own and k // n["C_k"] == own // n["C_k"]
    if name == "window" and "left" in pattern.given:
        return own - n["W_l"] <= k <= own + n["W_r"]
    if name == "window":
        return own - n["W"] < k <= own
    if name == "docs":
        return k <= own and bool(document[k] == document[own])
    assert name == "docs-full"
    return bool(document[k] == document[own])


def places_of(pattern: Pattern) -> Places:
    """The mask of the places, as a graph that selects keys has it."""
    found = narrowest(variant("topk").graph(pattern).masks)
    assert isinstance(found, Places)
    return found


def test_every_mask_of_keys_that_stand_together_is_here() -> None:
    """Seven kinds, five of them with both alignments, windows in two forms."""
    assert {p.name.removesuffix("-tl") for p in ONE_INTERVAL} == {
        "causal", "window", "chunk", "prefix", "docs", "docs-full",
    }  # fmt: skip
    assert len(ONE_INTERVAL) == 2 * 5 + 2


@settings(max_examples=300, deadline=None)
@given(pattern=masks, numbers=SIZES)
def test_pairs_are_as_many_keys_as_each_query_sees_and_selects(pattern: Pattern, numbers: dict[str, int]) -> None:
    """The sum of min(visible, topk), whichever side is longer; rows are the queries that see any."""
    numbers = at(pattern, numbers)
    seen = [len(keys) for keys in keys_seen(pattern, numbers)]
    mask = places_of(pattern)
    assert value(mask.pairs, numbers) == sum(min(n, numbers["n_t"]) for n in seen)
    assert value(mask.rows_touched, numbers) == sum(n > 0 for n in seen)
    if mask.rises:
        assert value(mask.keys_touched, numbers) == max(min(n, numbers["n_t"]) for n in seen)


@settings(max_examples=120, deadline=None)
@given(pattern=masks, numbers=SIZES)
def test_compulsory_rows_are_the_most_that_queries_can_select_apart(pattern: Pattern, numbers: dict[str, int]) -> None:
    """A matching of places with keys that their query sees, the best there is."""
    numbers = at(pattern, numbers)
    seen = keys_seen(pattern, numbers)
    offers = nx.Graph()
    chosen = [(q, t) for q, keys in enumerate(seen) for t in range(min(len(keys), numbers["n_t"]))]
    offers.add_nodes_from(chosen)
    offers.add_edges_from(((q, t), key) for q, t in chosen for key in seen[q])
    apart = len(nx.bipartite.maximum_matching(offers, chosen)) // 2
    found = compulsory(variant("topk").graph(pattern)).by_tensor
    sizes = numbers | {"B": 1, "h_k": 1, "h": 1, "d": 2, "d_v": 1}
    assert value(found["K"].read, sizes) == 2 * apart
    assert value(found["T"].read, sizes) == len(chosen)


def test_the_first_queries_of_a_chunk_that_began_before_them_leave_keys_over() -> None:
    """Chunks of 6, the first query at key 4: two queries select two of six keys each, the next six select all of theirs."""
    found = compulsory(variant("topk").graph("chunk")).by_tensor["K"].read
    sizes = {"N_q": 8, "N_k": 12, "C_k": 6, "n_t": 2, "B": 1, "h_k": 1, "h": 1, "d": 1, "d_v": 1}
    assert value(found, sizes) == 2 * 2 + 6
    assert value(places_of(Pattern("chunk")).pairs, sizes) == 2 * 2 + 1 + 5 * 2


def topk(i: dict[str, Array], seen: list[list[int]]) -> Array:
    """Query by query, head by head, over the first of its positions, as many as it sees keys."""
    q, k, v, t = i["Q"], i["K"], i["V"], i["T"].astype(int)
    found = np.zeros((*q.shape[:-1], v.shape[-1]))
    for place in np.ndindex(*q.shape[:-1]):
        sequence, group, _, query = place
        rows = t[sequence, group, query, : len(seen[query])]
        assert set(rows) <= set(seen[query]), "a position of a key that the query does not see"
        found[place] = attend(0.7 * k[sequence, group, rows] @ q[place], v[sequence, group, rows])
    return found


def dsa(i: dict[str, Array], seen: list[list[int]], count: int) -> Array:
    """Of the keys that a query sees alone, those with the best index scores."""
    q, rope = i["Q"], i["Q_rope"]
    found = np.zeros(q.shape)
    for sequence, query in np.ndindex(q.shape[0], q.shape[2]):
        rows = np.array(seen[query], int)
        scores = i["w"][sequence, query] @ np.maximum(i["Q_I"][sequence, :, query] @ i["K_I"][sequence, rows].T, 0.0)
        best = rows[np.argsort(-scores, kind="stable")[:count]]
        c, k = i["C"][sequence, best], i["K_rope"][sequence, best]
        for head in range(q.shape[1]):
            place = sequence, head, query
            found[place] = attend(0.7 * (c @ q[place] + k @ rope[place]), c)
    return found


def attend(scores: Array, values: Array) -> Array:
    """Of nothing, nothing."""
    weights = np.exp(scores - scores.max(initial=-np.inf))
    found: Array = weights @ values / weights.sum() if len(scores) else np.zeros(values.shape[-1])
    return found


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(("topk", "dsa")), pattern=masks, numbers=shapes())
def test_a_query_attends_to_keys_that_it_sees(name: str, pattern: Pattern, numbers: dict[str, int]) -> None:
    """Against loops over queries, at any shape; and tile by tile, a query a tile, what either walk counts."""
    numbers = at(pattern, numbers)
    numbers = fitted(name, numbers) | {"M": 64, "B_c": 1 + numbers["B_c"] % 3}
    graph = variant(name).graph(pattern)
    inputs = random_inputs(graph, numbers, np.random.default_rng(0))
    wanted = evaluate(graph, inputs, SCALARS, numbers)["O"]
    seen = keys_seen(pattern, numbers)
    plain = topk(inputs, seen) if name == "topk" else dsa(inputs, seen, numbers["n_t"])
    np.testing.assert_allclose(wanted, plain, rtol=1e-9, atol=1e-11)
    made = plan("per-query").derive(graph)
    found = execute(made.schedule, inputs, SCALARS, numbers)["O"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    assert counted(made.schedule, numbers) == walked(made.schedule, numbers)
    assert Walker(made.schedule).walk(numbers) == walk(made.schedule, numbers)


@settings(max_examples=60, deadline=None)
@given(pattern=masks, numbers=SIZES, tile=st.integers(1, 4))
def test_tiles_that_run_are_those_of_each_query(pattern: Pattern, numbers: dict[str, int], tile: int) -> None:
    """Whole tiles of the places that a query uses, and of its pairs as many as there are."""
    numbers = at(pattern, numbers) | {"d": 2, "d_v": 3, "h": 3, "h_k": 1, "B": 1, "B_r": 2, "B_c": tile}
    used = [min(len(keys), numbers["n_t"]) for keys in keys_seen(pattern, numbers)]
    schedule = plan("per-query").derive(variant("topk").graph(pattern)).schedule
    assert value(flops(schedule.graph)[Pipe.MMA].amount, numbers) == 2 * 3 * (2 + 3) * sum(used)
    run = value(executed(schedule)[Pipe.MMA].amount, numbers)
    assert run == 2 * 2 * ceil(3 / 2) * (2 + 3) * sum(tile * ceil(n / tile) for n in used)


def graph_of(name: str) -> Graph:
    """Selected keys under a mask with no list."""
    return variant("topk").graph(name)


def test_a_window_of_no_more_keys_than_are_selected_selects_nothing() -> None:
    """Its pairs are those of the window, and of a window of topk keys where that is the shorter one."""
    numbers = {"N_q": 9, "N_k": 12, "W": 4}
    mask = Pattern("window").mask(N_q, N_k)
    assert mask is not None
    pairs = places_of(Pattern("window")).pairs
    assert value(pairs, numbers | {"n_t": 7}) == value(mask.pairs, numbers)
    assert value(pairs, numbers | {"n_t": 2}) == value(mask.pairs, numbers | {"W": 2})


RISING = {"causal": True, "window": True, "prefix": True, "chunk": False, "window-tl": False}


@pytest.mark.parametrize(("name", "rises"), RISING.items())
def test_what_queries_see_rises_or_begins_again(name: str, rises: bool) -> None:
    """Then the last query of a tile tells how many places it uses; else a tile of several queries is not counted."""
    mask, graph = places_of(Pattern(name)), graph_of(name)
    several, one = (Loop((graph.indices["q"],), tile, grid=True) for tile in (B_r, sp.Integer(1)))
    places = Loop((graph.indices["k"],), B_c)
    assert mask.rises is rises
    if rises:
        assert coverage(mask, (several, places)) is not None
        return
    assert isinstance(coverage(mask, (one, places)), PlacesCoverage)
    with pytest.raises(DomainError, match="are counted with one query a tile; got grid q by B_r"):
        coverage(mask, (several, places))
    with pytest.raises(PreconditionError, match="what queries see rises, or a tile has one of them"):
        plan("flash2").derive(graph_of(name))


@pytest.mark.parametrize("what", ["query_rows", "key_rows_once", "key_tiles_once"])
def test_what_no_query_tells_is_not_counted(what: str) -> None:
    """Places of all queries together, where the last query need not use most."""
    graph = graph_of("chunk")
    loops = (Loop((graph.indices["q"],), sp.Integer(1), grid=True), Loop((graph.indices["k"],), B_c))
    with pytest.raises(DomainError, match="are counted query by query"):
        getattr(coverage(graph.mask, loops), what)
    with pytest.raises(DomainError, match="how many places some query uses under chunk is not counted"):
        places_of(Pattern("chunk")).keys_touched  # noqa: B018


def test_a_class_is_derived_where_no_query_sees_fewer_keys_than_are_selected() -> None:
    """The regime says so; where queries see more and then fewer, that there is none."""
    assert (n_t, W) in regime_of(places_of(Pattern("window")), {})
    with pytest.raises(DomainError, match="one query selects from more keys than the next"):
        regime_of(places_of(Pattern("chunk")), {})
    with pytest.raises(DomainError, match="is a list for one length"):
        regime_of(places_of(Pattern("docs", frozenset(("docs",)), DOCUMENTS)), {})
    assert C_k in places_of(Pattern("chunk")).pairs.free_symbols


def test_a_dense_indexer_sees_what_the_mask_says() -> None:
    """The graph of dsa has two masks: of the keys that are scored, and of the places that are used."""
    keys, own = variant("dsa").graph("window").masks
    assert (keys.column, own.column) == ("j", "k")
    assert isinstance(own, Places)
    assert keys.says == own.says
    assert narrowest((keys, own)) == own
    assert narrowest(()) is None


def test_the_other_alignment_is_that_of_the_keys_that_are_selected_from() -> None:
    """Of as many queries as keys both are one; of fewer, the other is counted by the places that it would leave."""
    words = ("explain", "topk", "mask=window", "W=3", "d=4", "topk=2", "--schedule", "per-query")
    assert "would keep" not in derive(*words, "N=9").out
    out = derive(*words, "Nq=4", "Nk=9").out
    assert "mask=window-tl is top-left and would keep 7 pairs, not 8" in " ".join(out.split())

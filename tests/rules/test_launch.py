"""Launching: trips become CTAs, and nothing is kept from one to the next."""

import sympy as sp

from derive.exact import value
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import B, B_r, N_q, h
from derive.traffic import traffic
from rules.schedule.examples import flash, fused, loop, streaming
from rules.schedule.launch import HEADS, QUERIES, launch_loop, parallel_indices
from tests.rules.meaning import RAGGED


def test_each_trip_is_a_cta() -> None:
    """ceil(N_q / B_r) of them, then B h times as many."""
    queries = apply_once(QUERIES, QUERIES.example()).after
    assert isinstance(queries, Schedule)
    assert queries.kernels[0].ctas == sp.ceiling(N_q / B_r)
    heads = apply_once(HEADS, queries).after
    assert isinstance(heads, Schedule)
    assert heads.kernels[0].ctas == B * h * sp.ceiling(N_q / B_r)
    assert [x.indices[0].name for x in heads.kernels[0].grid] == ["b", "h", "q"]


def test_a_cta_does_not_find_what_the_last_one_held() -> None:
    """K, held from one query tile to the next by one CTA that does not tile it, is read by each of three."""
    before = QUERIES.example()
    after = apply_once(QUERIES, before).after
    assert isinstance(after, Schedule)
    once, again = (value(traffic(s).by_tensor["K"].read, RAGGED) for s in (before, after))
    assert again == 3 * once


def test_the_keys_of_attention_are_no_grid_of_ctas() -> None:
    """Their partial results would meet in one O."""
    graph = streaming()
    assert not list(launch_loop("k").matches(fused(graph, loop(graph, "k"))))
    found = {i.name for i in parallel_indices(flash(), flash().kernels[0])}
    assert found == {"b", "h", "q", "e"}  # CTAs of different e would each make the scores again


def test_a_launched_loop_stands_innermost_in_the_grid() -> None:
    """Heads that are launched already stay outside the queries."""
    graph = streaming()
    schedule = fused(graph, loop(graph, "h", grid=True), loop(graph, "k"), loop(graph, "q"))
    after = apply_once(QUERIES, schedule).after
    assert [(x.indices[0].name, x.grid) for x in after.kernels[0].loops] == [("h", True), ("q", True), ("k", False)]  # type: ignore[union-attr]

"""The contract: what every rule in the catalogue must do, with no line written for any of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice, product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import divisors

from derive.denote import denote, equal
from derive.einsum import Einsum, Map, Reduce
from derive.errors import IllFormedError, PreconditionError
from derive.exact import value
from derive.graph import Graph
from derive.replay import walk
from derive.rewrite import Precondition, Rule, apply_once
from derive.schedule import Schedule
from rules.catalogue import ALGEBRA, ALL, SCHEDULE
from tests.rules.meaning import (
    RAGGED,
    cache_agrees,
    computes_its_graph,
    counted,
    looped,
    losses,
    rescaled_over,
    same_graphs,
    small_extents,
    streamed,
    visible,
    walked,
)
from tests.rules.near import near_graph, near_schedule
from tests.strategies import shapes

NEAR = 120
"""Redrawn subjects a rule is tried on."""
CLAUSES = [(rule, clause) for rule in ALL for clause in rule.preconditions]

every_rule = pytest.mark.parametrize("rule", ALL, ids=str)
every_algebra_rule = pytest.mark.parametrize("rule", ALGEBRA, ids=str)
every_schedule_rule = pytest.mark.parametrize("rule", SCHEDULE, ids=str)
every_clause = pytest.mark.parametrize(
    ("rule", "clause"), CLAUSES, ids=[f"{rule}: {clause.says[:60]}" for rule, clause in CLAUSES]
)


@every_rule
def test_a_rule_applies_to_its_own_example(rule: Rule[Any]) -> None:
    """The example is legal, something changes, and the step says which clauses were checked."""
    example = rule.example()
    step = apply_once(rule, example)
    assert step.before == example
    assert step.after != example
    assert step.reasons == tuple(clause.says for clause in rule.preconditions)
    assert losses(rule, example) == set()


@every_clause
def test_an_illegal_match_is_refused_with_its_clause(rule: Rule[Any], clause: Precondition[Any]) -> None:
    """The message says what would be needed."""
    with pytest.raises(PreconditionError) as refusal:
        apply_once(rule, clause.counterexample())
    assert str(refusal.value) == f"{rule} does not apply: it needs that {clause.says}"


@every_clause
def test_a_counterexample_breaks_its_clause_alone(rule: Rule[Any], clause: Precondition[Any]) -> None:
    """It has the rule's shape, and of all clauses only this one is false of its first match."""
    subject = clause.counterexample()
    match = next(iter(rule.shape(subject)))
    assert [c.says for c in rule.preconditions if not c.holds(subject, match)] == [clause.says]


@every_clause
def test_a_clause_is_needed(rule: Rule[Any], clause: Precondition[Any]) -> None:
    """Rewriting its counterexample regardless has no meaning, gives other values or counts, loses loops, or is idle."""
    assert losses(rule, clause.counterexample()) != set()


@every_algebra_rule
@settings(max_examples=15)
@given(numbers=shapes(), tile=st.integers(1, 8))
def test_an_algebra_rule_preserves_values(rule: Rule[Graph], numbers: dict[str, int], tile: int) -> None:
    """Before and after agree at the outputs; with a running maximum, also when the keys stream past in tiles."""
    before = rule.example()
    after = apply_once(rule, before).after
    assert isinstance(after, Graph)
    assert same_graphs(before, after, numbers)
    if over := rescaled_over(after):
        assert computes_its_graph(streamed(after, over, tile), numbers)


@every_algebra_rule
def test_an_algebra_rule_sees_factors_and_terms_in_any_order(rule: Rule[Graph]) -> None:
    """In every order of them, before and after agree at the outputs."""
    example, numbers = rule.example(), drawn_numbers(Random(0))
    for einsums in in_any_order(example):
        before = Graph(einsums, example.outputs, example.given)
        after = apply_once(rule, before).after
        assert isinstance(after, Graph)
        assert same_graphs(before, after, numbers), f"{before}\n->\n{after}"


@every_schedule_rule
def test_a_schedule_rule_sees_factors_and_terms_in_any_order(rule: Rule[Schedule]) -> None:
    """In every order of them the kernels, their loops and what stays in the cache are the same."""
    example = rule.example()
    wanted = apply_once(rule, example).after
    assert isinstance(wanted, Schedule)
    for einsums in in_any_order(example.graph):
        after = apply_once(rule, replace(example, graph=replace(example.graph, einsums=einsums))).after
        assert isinstance(after, Schedule)
        assert after.kernels == wanted.kernels


def in_any_order(graph: Graph) -> Iterator[tuple[Einsum, ...]]:
    """Its Einsums with the operands of each product and each sum in either order."""
    turns = ((e, replace(e, inputs=e.inputs[::-1])) if e.map in (Map.MUL, Map.ADD) else (e,) for e in graph.einsums)
    return product(*turns)


@every_algebra_rule
def test_an_algebra_rule_holds_for_the_operators_it_sees(rule: Rule[Graph]) -> None:
    """Each operator of its example exchanged for each other one: it is no match any more, or the values stay."""
    example, numbers, tried = rule.example(), drawn_numbers(Random(0)), 0
    for e, operator, reduce in product(example.einsums, Map, (None, *Reduce)):
        other = partial(_with_operator, e.output.name, operator, reduce)
        try:
            before = Graph((*map(other, example.einsums),), example.outputs, (*map(other, example.given),))
        except IllFormedError:
            continue
        tried += before != example
        for match in rule.matches(before):
            after = rule.rewrite(before, match)
            assert same_graphs(before, after, numbers), f"{before}\n->\n{after}"
    assert tried


def _with_operator(name: str, operator: Map, reduce: Reduce | None, e: Einsum) -> Einsum:
    return replace(e, map=operator, reduce=reduce) if e.output.name == name else e


@every_algebra_rule
@pytest.mark.parametrize("extent", [1, 2, 3])
def test_an_algebra_rule_is_proved_for_generic_entries(rule: Rule[Graph], extent: int) -> None:
    """SymPy proves before = after, every element written out."""
    before = rule.example()
    after = apply_once(rule, before).after
    assert isinstance(after, Graph)
    whole, parts = small_extents(before, after, extent)
    for name in before.outputs:
        wanted, found = denote(before, name, whole), denote(after, name, parts)
        assert wanted.keys() == found.keys()
        assert all(equal(wanted[at], found[at]) for at in wanted)


@every_schedule_rule
@settings(max_examples=15)
@given(numbers=shapes())
def test_a_schedule_rule_preserves_values(rule: Rule[Schedule], numbers: dict[str, int]) -> None:
    """Run tile by tile, ragged ends included, the rewritten schedule leaves what its graph means."""
    after = apply_once(rule, rule.example()).after
    assert isinstance(after, Schedule)
    assert computes_its_graph(after, numbers)


@every_schedule_rule
@settings(max_examples=15)
@given(numbers=shapes())
def test_a_schedule_rule_preserves_points(rule: Rule[Schedule], numbers: dict[str, int]) -> None:
    """Tiles of one row run every point of every Einsum once: all of them, or those that the mask keeps."""
    before = rule.example()
    after = apply_once(rule, before).after
    assert isinstance(after, Schedule)
    assert after.graph == before.graph
    numbers = {**numbers, "B_r": 1, "B_c": 1, "B_d": 1}
    found = walk(after, numbers).points
    for kernel in after.kernels:
        for e in after.nodes(kernel):
            dense = 1
            for index in e.space:
                dense *= value(index.extent, numbers)
            kept = value(e.points, numbers) if kernel.skips_masked and e.domain is not None else dense
            assert found[e.output.name] == kept


@every_schedule_rule
@settings(max_examples=15)
@given(numbers=shapes())
def test_the_rewritten_schedule_moves_what_its_closed_form_says(rule: Rule[Schedule], numbers: dict[str, int]) -> None:
    """Reads and writes of every tensor, against the tile walker."""
    after = apply_once(rule, rule.example()).after
    assert isinstance(after, Schedule)
    assert counted(after, numbers) == walked(after, numbers)


@every_rule
def test_a_rule_makes_progress(rule: Rule[Any]) -> None:
    """Once every match is rewritten nothing has its shape and may be rewritten again."""
    subject = rule.example()
    for _ in range(10):
        match = next(rule.matches(subject), None)
        if match is None:
            return
        subject = rule.rewrite(subject, match)
    pytest.fail(f"{rule} still applies after ten rewritings")


@every_rule
def test_a_rule_is_documented(rule: Rule[Any]) -> None:
    """Its file states an equation, what it needs, why it is right, what it gains and where it was published."""
    text = sys.modules[rule.rewrite.__module__].__doc__ or ""
    title, equation, *_ = text.split("\n\n")
    assert title.endswith(".")
    assert equation.startswith("    ")
    for heading in ("Precondition", "Proof", "Effect", "Reference"):
        assert f"\n{heading} " in text, f"{rule}: the docstring has no {heading}"
    assert rule.name == rule.name.lower().replace("_", "-").replace(" ", "-")
    assert rule.claim
    assert not rule.claim.endswith(".")
    assert rule.reference
    assert rule.preconditions
    assert all(clause.says and not clause.says.endswith(".") for clause in rule.preconditions)


def test_rules_are_told_apart_by_what_is_printed() -> None:
    """Name and options are one rule's alone."""
    printed = [str(rule) for rule in ALL]
    assert sorted(printed) == sorted(set(printed))


def drawn_numbers(random: Random) -> dict[str, int]:
    """Small extents and tiles; tiles need not divide."""
    heads = random.randint(1, 2)
    drawn = {name: random.randint(1, 5) for name in ("N_q", "N_k")} | {"d": random.randint(1, 2)}
    drawn |= {"d_v": random.randint(1, 2), "h_k": heads, "h": heads * random.randint(1, 2), "B": random.randint(1, 2)}
    parts = divisors(drawn["N_k"])
    drawn |= {"n_s": parts[len(parts) // 2], "N_p": drawn["N_q"]}
    chunks = divisors(drawn["N_q"])
    drawn |= {"C_t": chunks[len(chunks) // 2]}
    return drawn | {tile: random.randint(1, 3) for tile in ("B_r", "B_c", "B_d")}


@every_algebra_rule
def test_legal_matches_near_the_example_keep_every_value(rule: Rule[Graph]) -> None:
    """Indices, readers and outputs redrawn: where all clauses hold, the result has a meaning, and it is the same one."""
    legal = 0
    for seed in range(4 * NEAR):
        random = Random(seed)
        before = near_graph(rule.example(), random)
        match = next(rule.matches(before), None) if before is not None else None
        if before is None or match is None:
            continue
        legal += 1
        after, numbers = rule.rewrite(before, match), drawn_numbers(random)
        assert same_graphs(before, after, numbers), f"seed {seed}\n{before}\n->\n{after}"
        sums = online_part(after)
        if over := rescaled_over(sums):
            assert computes_its_graph(streamed(sums, over, 1), numbers), f"seed {seed}, streamed\n{after}"
    assert legal >= NEAR


def online_part(graph: Graph) -> Graph:
    """What a running maximum makes available in one pass: whatever reads the maximum, the shift or the exponentials.

    The shift and the exponentials themselves are relative to the maximum so far.
    """
    maxima = {e.rescale for e in graph.einsums} - {None}
    shifts = {e.output.name for e in graph.einsums if e.map.value == "sub" and e.inputs[1].name in maxima}
    relative = shifts | {
        e.output.name for e in graph.einsums if e.map.value == "exp" and {t.name for t in e.inputs} & shifts
    }
    readers = [e for e in graph.einsums if {t.name for t in e.inputs} & (maxima | relative)]
    wanted = {e.output.name for e in readers} - relative
    needed = set(wanted)
    for e in reversed(graph.einsums):
        if e.output.name in needed:
            needed |= {t.name for t in e.inputs} | ({e.rescale} if e.rescale else set())
    einsums = tuple(e for e in graph.einsums if e.output.name in needed)
    return Graph(einsums, tuple(e.output.name for e in einsums if e.output.name in wanted))


@every_schedule_rule
def test_legal_matches_near_the_example_keep_values_and_loops(rule: Rule[Schedule]) -> None:
    """Graphs, loop orders, grids and tiles redrawn: what was right stays right, no loop is lost, something changes."""
    legal = 0
    for seed in range(2 * NEAR):
        random = Random(seed)
        before = near_schedule(rule.example(), random)
        match = next(rule.matches(before), None) if before is not None else None
        if before is None or match is None:
            continue
        legal += 1
        after, numbers = rule.rewrite(before, match), drawn_numbers(random)
        about = f"seed {seed}, {numbers}\n{before}\n->\n{after}\n{before.graph}"
        assert looped(before) <= looped(after), about
        if computes_its_graph(before, numbers):
            assert computes_its_graph(after, numbers), about
        if visible(before) == visible(after):
            assert walked(before, RAGGED) != walked(after, RAGGED), about
        if any(kernel.residency for kernel in after.kernels):
            for at in (numbers, RAGGED):
                running, capacity = random.randint(1, 8), random.choice((random.randint(1, 300), 64, 128, 256))
                assert cache_agrees(after, at, running=running, capacity=capacity), f"{running} {capacity} {about}"
    assert legal >= NEAR // 10


def test_most_redrawn_subjects_have_the_rule_s_shape() -> None:
    """What cannot be generated cannot be tested: of 150 draws, some of them ill-formed, 20 have the shape, legal or not."""
    for rule in ALL:
        near = near_graph if rule in ALGEBRA else near_schedule
        drawn = (near(rule.example(), Random(seed)) for seed in range(150))
        assert sum(any(True for _ in islice(rule.shape(s), 1)) for s in drawn if s is not None) >= 20, str(rule)

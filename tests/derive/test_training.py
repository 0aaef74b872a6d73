"""Memory over a forward and a backward pass, against buffers that are taken and given back one by one."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import names, variant
from derive.errors import IllFormedError
from derive.exact import value
from derive.graph import Graph
from derive.rewrite import WherePossible
from derive.schedule import Schedule
from derive.training import Training
from rules.algebra import split_softmax_gradient
from rules.derivations import names as schedule_names
from rules.derivations import plan
from tests.strategies import shapes

BACKWARD = [name for name in names() if variant(name).direction == "backward"]
PLANS = [name for name in schedule_names() if plan(name).after]
SAVED = "everything saved"
"""The program of a framework, which computes nothing again: scaled queries live on through the forward pass."""


@lru_cache
def passes(name: str, backward: str) -> tuple[Schedule, Schedule]:
    """The schedules of both passes."""
    graph = variant(name).graph()
    forward = Graph(graph.given, variant(name).outputs)
    if backward == SAVED:
        saving = replace(plan("naive-backward"), algebra=(WherePossible(split_softmax_gradient.RULE),))
        return plan("op-by-op").derive(forward).schedule, saving.derive(graph).schedule
    return plan(plan(backward).after).derive(forward).schedule, plan(backward).derive(graph).schedule


def taken_and_given_back(forward: Schedule, backward: Schedule, at: dict[str, int], *, accumulates: bool) -> int:
    """The most bytes held at once when each buffer is taken as it is first written and given back after its last use."""
    program = [(schedule, kernel) for schedule in (forward, backward) for kernel in schedule.kernels]
    start = len(forward.kernels)
    size = {
        (n >= start, t.name): int(value(t.size * t.width, at))
        for n, (schedule, kernel) in enumerate(program)
        for t in schedule.tensors_of(kernel)
    }
    leaves = {t.name for t in forward.graph.inputs}
    held: dict[tuple[bool, str], int] = {(False, name): size[False, name] for name in leaves}
    most = 0
    extra = sum(size[True, name] for name in backward.graph.outputs) if accumulates else 0
    own = set(backward.graph.producers)

    def uses(n: int) -> set[tuple[bool, str]]:
        schedule, kernel = program[n]
        read = {t.name for e in schedule.nodes(kernel) for t in e.inputs if t.indices}
        return {(n >= start and name in own, name) for name in read}

    for n, (schedule, kernel) in enumerate(program):
        late = n >= start
        if n == start:
            made = {e.output.name for e in backward.graph.given} | leaves
            held |= {(False, t.name): size[True, t.name] for t in backward.graph.inputs if t.name not in made}
        held |= {(late, t.name): size[late, t.name] for t in schedule.outputs_of(kernel)}
        if n == start - 1:  # what the backward pass reads and no forward kernel left: a log-sum-exp
            held |= {(False, e.output.name): size[True, e.output.name] for e in backward.graph.saved
                     if (False, e.output.name) not in held}  # fmt: skip
        sums = 0
        if (
            kernel.loop_of("k")
            and "dQs" in kernel.einsums
            and "dQs" not in {t.name for t in schedule.outputs_of(kernel)}
        ):
            keys = next(x for x in kernel.loops if x.indices[0].name == "k")
            inside = kernel.loops.index(keys) < next(i for i, x in enumerate(kernel.loops) if x.indices[0].name == "q")
            sums = size[True, "dQs"] * (inside and value(keys.trips, at) > 1)
        most = max(most, sum(held.values()) + extra + sums)
        later = {use for m in range(n + 1, len(program)) for use in uses(m)}
        kept = {(False, x) for x in (*forward.graph.outputs, *leaves)} | {(True, x) for x in backward.graph.outputs}
        handed = {(False, t.name) for t in backward.graph.inputs if t.name.startswith("dO")}
        held = {key: amount for key, amount in held.items() if key in later | kept | handed}
    return most


@pytest.mark.parametrize("name", BACKWARD)
@pytest.mark.parametrize("backward", ["naive-backward", "flash2-backward", "flash2-backward-split", SAVED])
@settings(max_examples=12, deadline=None)
@given(at=shapes(), accumulates=st.booleans(), widths=st.lists(st.integers(1, 4), min_size=7, max_size=7))
def test_the_peak_is_what_buffers_taken_and_given_back_reach(
    name: str, backward: str, at: dict[str, int], accumulates: bool, widths: list[int]
) -> None:
    """Whatever the sizes and widths, tensor by tensor."""
    at = at | dict(zip(("b", "b_kv", "b_s", "b_p", "b_l", "b_acc", "b_part"), widths, strict=True))
    forward, after = passes(name, backward)
    found = value(Training(forward, after, accumulates).peak.amount, at)
    assert found == taken_and_given_back(forward, after, at, accumulates=accumulates)


@pytest.mark.parametrize("name", BACKWARD)
@pytest.mark.parametrize("backward", PLANS)
@settings(max_examples=4, deadline=None)
@given(at=shapes())
def test_buffers_for_gradients_add_the_gradients_and_nothing_else(name: str, backward: str, at: dict[str, int]) -> None:
    """They are there throughout, whatever else is."""
    at = at | dict.fromkeys(("b", "b_kv", "b_s", "b_p", "b_l"), 2) | {"b_acc": 4, "b_part": 4}
    forward, after = passes(name, backward)
    gradients = sum(value(after.graph.tensors[x].size * 2, at) for x in after.graph.outputs)
    alone, added = (value(Training(forward, after, adds).peak.amount, at) for adds in (False, True))
    assert added == alone + gradients


def test_two_forward_passes_are_no_training() -> None:
    """The second must say what the first left."""
    forward, _ = passes("mha-backward", "naive-backward")
    with pytest.raises(IllFormedError, match="a backward pass reads what a forward pass left"):
        Training(forward, forward)

"""Fusing kernels: each intermediate private to the run saves one write and one read of itself."""

import pytest

from derive.rewrite import Rule, apply_once
from derive.schedule import Kernel, Schedule, lift
from derive.traffic import compulsory, traffic
from rules.schedule.examples import backward_saved, backward_streaming, three_pass
from rules.schedule.fuse import ALL, BETWEEN_PRODUCTS, EPILOGUE, PROLOGUE
from rules.schedule.fuse import RULES as WHOLE
from rules.schedule.fuse_pairs import PAIRS, SOFTMAX

RULES = (*WHOLE, PAIRS, SOFTMAX)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_private_intermediate_saves_a_write_and_a_read(rule: Rule[Schedule]) -> None:
    """What only the merged kernel reads no longer moves; all else moves as it did, shared reads merged."""
    step = apply_once(rule, rule.example())
    assert isinstance(step.before, Schedule)
    assert isinstance(step.after, Schedule)
    before, after = traffic(step.before).by_tensor, traffic(step.after).by_tensor
    (merged,) = (k for k in step.after.kernels if k not in step.before.kernels)
    private = {t.name for t in step.after.internals_of(merged)}
    assert private
    for name in private:
        size = step.before.graph.tensors[name].size
        assert before[name].write == size
        assert before[name].read in {size * n for n in range(1, 4)}
        assert name not in after
    kept = {name for name in before if name not in private}
    assert all(after[name].write == before[name].write for name in kept)


def test_one_kernel_moves_only_what_it_must() -> None:
    """Inputs once, the output once."""
    after = apply_once(ALL, ALL.example()).after
    assert isinstance(after, Schedule)
    assert traffic(after) == compulsory(after.graph)


def test_the_softmax_between_the_products_is_one_kernel() -> None:
    """Naive attention: scaling, S, softmax, O."""
    after = apply_once(BETWEEN_PRODUCTS, lift(three_pass())).after
    assert [k.name for k in after.kernels] == ["Qs", "S", "m..P", "O"]  # type: ignore[union-attr]


def test_the_scaling_joins_the_product_that_reads_it() -> None:
    """Qs never crosses memory."""
    after = apply_once(PROLOGUE, lift(three_pass())).after
    assert after.kernels[0].name == "Qs..S"  # type: ignore[union-attr]


def test_a_scaling_that_something_else_reads_is_no_prologue() -> None:
    """Its result would have to be written after all."""
    graph = three_pass()
    extra = type(graph)((*graph.einsums[:2], *graph.einsums[2:]), ("Qs", "O"))
    after = apply_once(PROLOGUE, lift(extra)).after
    assert isinstance(after, Schedule)
    assert after.outputs_of(after.kernels[0])[0].name == "Qs"


def test_the_scale_joins_the_product_that_it_finishes() -> None:
    """In a backward pass dQ = dQs c runs inside dQs = dS K: the unscaled gradient never crosses memory."""
    after = apply_once(EPILOGUE, lift(backward_saved())).after
    assert isinstance(after, Schedule)
    assert "dQs..dQ" in [k.name for k in after.kernels]
    assert "dQs" not in traffic(after).by_tensor


def test_the_row_sums_stay_apart() -> None:
    """D runs once, before one kernel that does the rest."""
    after = apply_once(PAIRS, lift(backward_streaming())).after
    assert isinstance(after, Schedule)
    (sums, rest) = after.kernels
    assert sums.name == "D"
    assert {"dP", "dV", "dK", "dQ"} <= set(rest.einsums)


def test_no_rule_fuses_a_single_kernel() -> None:
    """There is nothing to merge."""
    graph = three_pass()
    alone = Schedule(graph, (Kernel(tuple(e.output.name for e in graph.einsums)),))
    assert not any(list(rule.shape(alone)) for rule in RULES)

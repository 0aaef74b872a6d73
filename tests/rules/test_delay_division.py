"""Divisions after products of elements: dropout is no obstacle to the online softmax."""

from derive.attention import variant
from derive.passes import passes
from derive.rewrite import WherePossible
from rules.algebra import defer_division, delay_division, split_softmax
from rules.derivations import plan
from rules.streamed import STREAMED


def test_dropout_streams_in_one_pass_only_with_it() -> None:
    """Without the rule the quotient stands before the dropout, and a second pass over the keys waits for l."""
    graph = variant("dropout").graph()
    for rule in (split_softmax.RULE, defer_division.RULE, delay_division.RULE):
        assert WherePossible(rule) in STREAMED
    one = plan("flash2").derive(graph).schedule.graph
    assert passes(one, "k") == 1
    without = graph
    for taken in STREAMED:
        rule = taken.rule
        while rule is not delay_division.RULE and (match := next(rule.matches(without), None)) is not None:
            without = rule.rewrite(without, match)
    assert passes(without, "k") > 1

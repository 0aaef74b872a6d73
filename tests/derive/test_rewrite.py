"""Applying rules: the first legal match, a record of it, and refusals that say what is missing."""

import pytest
import sympy as sp

from derive.attention import variant
from derive.errors import PreconditionError
from derive.graph import Graph
from derive.notation import cascade
from derive.rewrite import WherePossible, apply_once, deduce
from derive.schedule import lift
from derive.symbols import N_k, N_q, b
from rules.algebra import defer_division, online_softmax, share_heads, split_softmax
from rules.schedule import fuse, interchange, skip_masked, tile
from rules.schedule.examples import three_pass, two_pass


def test_a_step_keeps_before_after_and_the_reasons() -> None:
    """It is the record that explanations are made of."""
    step = apply_once(defer_division.RULE, three_pass())
    assert (step.before, step.after) == (three_pass(), two_pass())
    assert step.reasons == tuple(p.says for p in defer_division.RULE.preconditions)
    assert step.condition == sp.true


def test_an_illegal_match_is_passed_over_for_a_legal_one() -> None:
    """P1 is an output, P2 is not: the second division is deferred."""
    text = """
        P1[q,k] = A[q,k] / l[q]
        P2[q,k] = A[q,k] / l[q]
        X[q] = sum[k] P1[q,k] * v[k]
        Y[q] = sum[k] P2[q,k] * v[k]
    """
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("P1", "X", "Y"), width=b)
    after = apply_once(defer_division.RULE, graph).after
    assert isinstance(after, Graph)
    assert "P1" in after.producers
    assert "P2" not in after.producers


def test_a_rule_whose_shape_is_nowhere_says_what_it_looks_for() -> None:
    """Its claim."""
    with pytest.raises(PreconditionError, match=r"split-softmax does not apply: nothing here has its shape \(softmax"):
        apply_once(split_softmax.RULE, three_pass())


def test_a_broken_clause_is_named_with_the_rule_s_options() -> None:
    """Two passes cannot be tiled."""
    with pytest.raises(
        PreconditionError, match=r"tile\(k by B_c\) does not apply: it needs that the kernel needs one pass"
    ):
        apply_once(tile.KEYS, apply_once(fuse.ALL, lift(two_pass())).after)  # type: ignore[type-var]


def test_a_rule_prints_with_its_options() -> None:
    """Two interchanges are told apart."""
    assert str(interchange.KEYS_OUTSIDE) == "interchange(k outside q)"
    assert str(fuse.ALL) == "fuse"


def test_a_derivation_is_algebra_then_schedule_in_order() -> None:
    """Each step begins where the last one ended."""
    start = variant("mha").graph()
    made = deduce("toy", start, (split_softmax.RULE, defer_division.RULE, online_softmax.RULE), (fuse.ALL, tile.KEYS))
    assert [str(s.rule) for s in made.steps] == [
        "split-softmax",
        "defer-division",
        "online-softmax",
        "fuse",
        "tile(k by B_c)",
    ]
    assert made.steps[0].before == start
    assert all(a.after == z.before for a, z in zip(made.steps[:2], made.steps[1:3], strict=True))
    assert made.schedule == made.steps[-1].after


def test_where_possible_takes_a_rule_as_often_as_it_has_a_shape() -> None:
    """Both copies of repeated attention are shared; without a copy nothing is."""
    rule = WherePossible(share_heads.RULE)
    assert len(deduce("toy", variant("gqa-repeated").graph(), (rule,), ()).steps) == 2
    assert deduce("toy", variant("gqa").graph(), (rule,), (WherePossible(skip_masked.RULE),)).steps == ()


def test_where_possible_is_no_excuse_for_an_illegal_match() -> None:
    """Something has the shape and breaks a clause: that is an error, not nothing."""
    graph = share_heads.RULE.preconditions[0].counterexample()
    with pytest.raises(PreconditionError, match="the repeated copy is no output"):
        deduce("toy", graph, (WherePossible(share_heads.RULE),), ())

"""Each part relative to its own maximum: no part waits for another, and large scores do not overflow."""

import numpy as np

from derive.evaluate import evaluate
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.passes import passes
from derive.rewrite import apply_once
from derive.symbols import N_q, d_v, n_s
from rules.algebra.own_maximum import RULE


def test_no_part_waits_for_another() -> None:
    """The sums read the part's maximum alone, where they read that of all parts."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    assert (passes(step.before, "s"), passes(step.after, "s")) == (2, 2)
    assert [t.name for t in step.before.producers["X"].inputs] == ["S", "m"]
    assert [t.name for t in step.after.producers["X"].inputs] == ["S", "m_s"]


def test_a_row_and_part_costs_one_exponential_more() -> None:
    """And a difference; each partial result one product."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    before, after = flops(step.before), flops(step.after)
    assert (after[Pipe.SFU].amount - before[Pipe.SFU].amount).expand() == N_q * n_s
    assert (after[Pipe.VECTOR].amount - before[Pipe.VECTOR].amount).expand() == (N_q * n_s * (2 + d_v)).expand()


def test_scores_far_apart_do_not_overflow() -> None:
    """A part 2000 below another weighs nothing; none is infinite."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Graph)
    scores = np.array([[[0.0, 1.0]], [[2000.0, 1999.0]]])
    v = np.arange(4.0).reshape(2, 2, 1)
    found = evaluate(after, {"S": scores, "V": v}, values={"N_q": 1, "N_k": 2, "d_v": 1, "n_s": 2})["O"]
    e = np.exp(-1.0)
    np.testing.assert_allclose(found, [[(2 + 3 * e) / (1 + e)]])

"""Parts that scale the query for themselves: the scaled query never crosses memory."""

from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.rewrite import apply_once
from derive.symbols import N_q, d, n_s
from rules.algebra.read_in_each_part import RULE


def test_the_scaled_query_is_made_n_s_times() -> None:
    """N_q d products become n_s N_q d, of a copy that is read from where Q lies."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Graph)
    assert isinstance(step.after, Graph)
    more = flops(step.after)[Pipe.VECTOR].amount - flops(step.before)[Pipe.VECTOR].amount
    assert more.expand() == (N_q * d * (n_s - 1)).expand()
    assert step.after.inputs == step.before.inputs
    assert all(any(i.part_of for i in step.after.tensors[name].indices) for name in ("Q_s", "Qs"))

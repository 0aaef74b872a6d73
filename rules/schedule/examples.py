"""Small schedules that the schedule rules use as examples and counterexamples."""

from __future__ import annotations

import sympy as sp

from derive.attention.gqa import VARIANT as GQA
from derive.attention.linear_recurrent import VARIANT as RECURRENCE
from derive.attention.mha import VARIANT as MHA
from derive.graph import Graph
from derive.rewrite import Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B_c, B_r
from rules.algebra import (
    defer_division,
    online_softmax,
    recompute,
    row_sum,
    split_softmax,
    split_softmax_gradient,
    use_log_sum_exp,
)


def streaming(mask: str = "full", *, grouped: bool = False) -> Graph:
    """Attention that needs one pass over k."""
    return _after(_attention(mask, grouped), split_softmax.RULE, defer_division.RULE, online_softmax.RULE)


def two_pass(mask: str = "full") -> Graph:
    """Attention with the division deferred: two passes over k."""
    return _after(_attention(mask), split_softmax.RULE, defer_division.RULE)


def three_pass(mask: str = "full") -> Graph:
    """Attention with the softmax opened: three passes over k."""
    return _after(_attention(mask), split_softmax.RULE)


def _gradients(mask: str, grouped: bool) -> Graph:
    from derive.differentiate import differentiate  # no forward schedule waits for it

    return differentiate(_attention(mask, grouped))


def backward_saved(mask: str = "full", *, grouped: bool = False) -> Graph:
    """The backward pass of attention with P saved."""
    return _after(_gradients(mask, grouped), recompute.OPERANDS, split_softmax_gradient.RULE)


def backward_streaming(mask: str = "full", *, grouped: bool = False) -> Graph:
    """The backward pass that makes P again from the log-sum-exp: one pass over k."""
    scores = (recompute.SCORES, recompute.SCORES, use_log_sum_exp.RULE)
    rules = (*scores, recompute.OPERANDS, split_softmax_gradient.RULE, row_sum.RULE)
    return _after(_gradients(mask, grouped), *rules)


def _attention(mask: str, grouped: bool = False) -> Graph:
    return (GQA if grouped else MHA).graph(mask)


def recurrence() -> Graph:
    """Linear attention token by token."""
    return RECURRENCE.graph()


def _after(graph: Graph, *rules: Rule[Graph]) -> Graph:
    for rule in rules:
        (match, *_) = rule.matches(graph)
        graph = rule.rewrite(graph, match)
    return graph


def fused(graph: Graph, *loops: Loop) -> Schedule:
    """All of *graph* in one kernel with *loops*."""
    return Schedule(graph, (Kernel(tuple(e.output.name for e in graph.einsums), loops),))


def loop(graph: Graph, name: str, *, grid: bool = False) -> Loop:
    """A loop over one index: queries by B_r, keys by B_c, anything else one at a time."""
    tile = {"q": B_r, "k": B_c}.get(name, sp.Integer(1))
    return Loop((graph.indices[name],), tile, grid)


def with_loops(schedule: Schedule, names: tuple[str, ...], index: str) -> Schedule:
    """*schedule* with the kernels that define *names* tiled over *index*."""
    for name in names:
        kernel = schedule.kernel_of[name]
        schedule = schedule.replace((kernel,), Kernel(kernel.einsums, (loop(schedule.graph, index),)))
    return schedule


def flash(mask: str = "full", *, grouped: bool = False) -> Schedule:
    """One kernel, heads and query tiles on the grid, keys streamed."""
    graph = streaming(mask, grouped=grouped)
    heads = ("b", "g", "r") if grouped else ("b", "h")
    grid = (loop(graph, name, grid=True) for name in (*heads, "q"))
    return fused(graph, *grid, loop(graph, "k"))

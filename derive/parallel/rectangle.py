r"""How many pairs a mask keeps among some of its queries and some of its keys, exactly.

For queries q in [q_0, q_1) and keys in [k_0, k_1) an interval begin(q) <= k < end(q) keeps

    sum_q clamp(end(q) - k_0, 0, k_1 - k_0) - clamp(begin(q) - k_0, 0, k_1 - k_0)

pairs; where a bound rises by one a query the sum has the closed form of ``derive.clamped``.
"""

from __future__ import annotations

import sympy as sp

from derive.block_list import BlockList
from derive.clamped import clamped, is_line
from derive.density import Density
from derive.extremes import least, most
from derive.interval import Interval
from derive.mask import Mask
from derive.symbols import COPY, ROW

Range = tuple[sp.Expr, sp.Expr]
"""The first position and one past the last."""


def pairs_in(mask: Mask | None, queries: Range, keys: Range) -> sp.Expr:
    """Pairs that *mask* keeps among *queries* and *keys*; all of them without a mask, their share of a density."""
    area = sp.expand((queries[1] - queries[0]) * (keys[1] - keys[0]))
    if mask is None:
        return area
    if isinstance(mask, Density):
        return mask.share * area
    if isinstance(mask, BlockList):
        return mask.pairs_in(queries, keys)
    return sp.Add(*(_of_interval(interval, queries, keys) for interval in mask.intervals))


def _of_interval(interval: Interval, queries: Range, keys: Range) -> sp.Expr:
    first, past = queries
    if interval.since is not None:
        first = most(first, interval.since)
    if interval.until is not None:
        past = least(past, interval.until)
    if interval.since is not None or interval.until is not None:
        past = most(past, first)
    width = sp.expand(keys[1] - keys[0])
    end = None if interval.last is None else interval.last + 1
    found = _below(end, first, past, keys, width, width) - _below(
        interval.first, first, past, keys, width, sp.Integer(0)
    )
    return found if interval.copies == 1 else sp.Sum(found, (COPY, 0, interval.copies - 1))


def _below(
    bound: sp.Expr | None, first: sp.Expr, past: sp.Expr, keys: Range, width: sp.Expr, otherwise: sp.Expr
) -> sp.Expr:
    """Keys of the range that stand below *bound*, summed over the queries from *first* to *past* - 1."""
    if bound is None:
        return (past - first) * otherwise
    if not bound.has(ROW):
        return (past - first) * _held(sp.expand(bound - keys[0]), width)
    if is_line(bound):
        return clamped(sp.expand(bound - keys[0]), width, first, past)
    return sp.Sum(_held(bound - keys[0], width), (ROW, first, past - 1))


def _held(x: sp.Expr, top: sp.Expr) -> sp.Expr:
    return most(least(x, top), sp.Integer(0))

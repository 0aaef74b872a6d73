"""Masks: closed forms of pairs, rows and keys against counting pair by pair."""

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.evaluate import kept_pairs
from derive.exact import value
from derive.interval import Interval
from derive.mask import Mask, _shifted, causal, reach
from derive.symbols import COPY, ROW, C_k, N_k, N_q, W

ALIGNMENTS = ("bottom-right", "top-left")


def kept(rows: int, columns: int, align: str) -> list[list[bool]]:
    """The mask written out from its words: the last query on the last key, or the first on the first."""
    shift = columns - rows if align == "bottom-right" else 0
    return [[k <= q + shift for k in range(columns)] for q in range(rows)]


@pytest.mark.parametrize("align", ALIGNMENTS)
@given(rows=st.integers(1, 30), columns=st.integers(1, 30))
def test_counts_equal_counting_pair_by_pair(align: str, rows: int, columns: int) -> None:
    """Pairs, keys some query sees and queries that see a key, whichever side is longer."""
    mask, pairs, numbers = causal(N_q, N_k, align=align), kept(rows, columns, align), {"N_q": rows, "N_k": columns}
    assert value(mask.pairs, numbers) == sum(map(sum, pairs))
    assert value(mask.keys_touched, numbers) == sum(map(any, zip(*pairs, strict=True)))
    assert value(mask.rows_touched, numbers) == sum(map(any, pairs))


@given(a=st.integers(1, 10**6), b=st.integers(1, 10**6))
def test_bottom_right_of_a_shape_is_top_left_of_its_transpose(a: int, b: int) -> None:
    """P_BR(a, b) = P_TL(b, a): one rule an alignment, with no case on which side is longer."""
    bottom_right, top_left = causal(N_q, N_k), causal(N_q, N_k, align="top-left")
    assert value(bottom_right.pairs, {"N_q": a, "N_k": b}) == value(top_left.pairs, {"N_q": b, "N_k": a})


@given(n=st.integers(1, 10**18))
def test_a_causal_square_keeps_half_and_its_diagonal(n: int) -> None:
    """N (N + 1)/2, exactly."""
    assert value(causal(N_q, N_k).pairs, {"N_q": n, "N_k": n}) == n * (n + 1) // 2


ENDS = (
    ROW, ROW + 1, ROW - 3, 2 * ROW, 3 * ROW - 4, ROW**2, sp.Integer(2), sp.Min(ROW, 4), sp.Min(2 * ROW, 5),
    sp.Max(ROW - 2, 3), sp.Max(2 * ROW, 3), C_k * sp.floor(ROW / C_k), C_k * sp.floor(ROW / C_k) + C_k - 1,
)  # fmt: skip
"""Bounds that rise or stay from a query to the next: lines, steeper ones, held, and stairs."""


@settings(max_examples=200)
@given(
    end=st.sampled_from(ENDS),
    width=st.none() | st.integers(0, 3),
    since=st.none() | st.integers(0, 4),
    lasting=st.none() | st.integers(0, 5),
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    chunk=st.integers(1, 4),
)
def test_any_rising_interval_is_added_up(
    end: sp.Expr, width: int | None, since: int | None, lasting: int | None, rows: int, columns: int, chunk: int
) -> None:
    """Pairs and rows, where it has a form and where it is a sum over the queries, for some of them or for all."""
    first = None if width is None else _shifted(end, sp.Integer(width))
    until = None if lasting is None else (since or 0) + lasting
    bounds = [None if x is None else sp.Integer(x) for x in (since, until)]
    some = Mask("any", "", "q", "k", N_q, N_k, first=first, last=end, since=bounds[0], until=bounds[1])
    numbers = {"N_q": rows, "N_k": columns, "C_k": chunk}
    kept = kept_pairs(some, numbers)
    assert value(some.pairs, numbers) == kept.sum()
    assert value(some.rows_touched, numbers) == kept.any(1).sum()


@pytest.mark.parametrize("end", [ROW, ROW - 3, sp.Min(ROW, 4), sp.Max(ROW - 2, 3)])
def test_lines_and_lines_that_are_held_need_no_sum(end: sp.Expr) -> None:
    """Nor does a single query, whatever its bound."""
    assert not Mask("any", "", "q", "k", N_q, N_k, first=_shifted(end, sp.Integer(1)), last=end).pairs.has(sp.Sum)
    single = Mask("any", "", "q", "k", sp.Integer(1), N_k, first=2 * ROW + 1, last=ROW**2 + 5)
    assert not single.pairs.has(sp.Sum)
    assert value(single.pairs, {"N_k": 4}) == 3


def test_copies_reach_as_far_as_the_last_of_them() -> None:
    """One past key 2 W - 1, where copy c has keys 2 c and 2 c + 1."""
    pair = 2 * COPY, 2 * COPY + 2
    assert reach(Interval(*pair, copies=W), pair) == 2 * W
    assert reach(Interval(*pair), pair) == pair[1]

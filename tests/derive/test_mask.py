"""Masks: closed forms of pairs, rows and keys against counting pair by pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.exact import value
from derive.mask import causal
from derive.symbols import N_k, N_q

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

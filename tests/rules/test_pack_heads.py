"""Packing heads: the query heads of a group share a tile, so K is read once for all of them."""

import pytest
import sympy as sp

from derive.exact import value
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import B_r, N_q, h, h_k
from derive.traffic import traffic
from rules.schedule.examples import flash
from rules.schedule.pack_heads import RULE

GROUPS = {"B": 1, "h": 12, "h_k": 3, "N_k": 10, "B_c": 4, "d": 2, "d_v": 2}


def reads_of_k(schedule: object, numbers: dict[str, int]) -> int:
    """Elements of K that the SMs read."""
    assert isinstance(schedule, Schedule)
    return int(value(traffic(schedule).by_tensor["K"].read, numbers))


def test_in_decode_k_is_read_once_for_the_group() -> None:
    """One query, 4 heads a group: 4 reads of K become 1."""
    step = apply_once(RULE, RULE.example())
    numbers = {**GROUPS, "N_q": 1, "B_r": 16}
    assert (reads_of_k(step.before, numbers), reads_of_k(step.after, numbers)) == (4 * 3 * 10 * 2, 3 * 10 * 2)


@pytest.mark.parametrize(("queries", "rows"), [(5, 3), (8, 4), (3, 16), (7, 7)])
def test_k_is_read_once_a_tile_of_query_head_pairs(queries: int, rows: int) -> None:
    """ceil(N_q r / B_r) reads instead of r ceil(N_q / B_r)."""
    step = apply_once(RULE, RULE.example())
    numbers, k = {**GROUPS, "N_q": queries, "B_r": rows}, 3 * 10 * 2
    assert reads_of_k(step.before, numbers) == 4 * -(-queries // rows) * k
    assert reads_of_k(step.after, numbers) == -(-queries * 4 // rows) * k


def test_heads_run_fastest_in_a_packed_tile() -> None:
    """Rows are (query, head) pairs, so that a tile holds few queries and all their heads."""
    after = apply_once(RULE, RULE.example()).after
    (packed,) = (x for x in after.kernels[0].loops if len(x.indices) == 2)  # type: ignore[union-attr]
    assert [i.name for i in packed.indices] == ["q", "r"]
    assert packed.trips == sp.ceiling(N_q * h / h_k / B_r)


def test_heads_with_keys_of_their_own_are_not_packed() -> None:
    """In multi-head attention every input carries the head."""
    assert not list(RULE.shape(flash()))

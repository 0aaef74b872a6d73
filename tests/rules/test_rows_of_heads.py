"""Rows of heads: the keys of one query are read once for a tile of its heads."""

import pytest

from derive.attention import variant
from derive.exact import value
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.symbols import B_r, N_k, N_q, d
from derive.traffic import traffic
from rules.derivations import plan
from rules.schedule.rows_of_heads import RULE


@pytest.mark.parametrize(("heads", "rows", "times"), [(8, 8, 1), (8, 3, 3), (5, 64, 1)])
def test_keys_are_read_once_a_tile_of_heads(heads: int, rows: int, times: int) -> None:
    """ceil(h / B_r) times, whatever the queries."""
    after = apply_once(RULE, RULE.example()).after
    assert isinstance(after, Schedule)
    numbers = {"N_q": 4, "N_k": 6, "d": 2, "h": heads, "B_r": rows}
    assert value(traffic(after).by_tensor["K"].read, numbers) == times * value(N_q * N_k * d, numbers)


def test_heads_of_a_latent_share_a_tile() -> None:
    """Queries and sequences one by one, then heads by B_r, then selected keys."""
    core = plan("per-query").derive(variant("dsa").graph()).schedule.kernel_of["O"]
    assert [(loop.indices[0].name, loop.grid) for loop in core.loops] == [
        ("b", True),
        ("q", True),
        ("r", True),
        ("k", False),
    ]
    assert core.loops[2].tile == B_r


def test_attention_over_keys_that_all_queries_share_is_left_alone() -> None:
    """Its rows are queries."""
    assert not list(RULE.shape(plan("naive").derive(variant("gqa").graph()).schedule))

"""The walk in arrays against the walk in plain Python: two programs that count the same things one by one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings

from derive.attention import variant
from derive.errors import UnboundError
from derive.replay import walk
from derive.replay_arrays import Walker
from rules.derivations import plan
from tests.derive.test_replay import SQUARE
from tests.derive.test_traffic import fixed
from tests.strategies import derivation, masks, pairs, shapes


@lru_cache(maxsize=512)
def walker(variant: str, schedule: str, mask: str) -> Walker:
    """A schedule, ready to be walked."""
    return Walker(derivation(variant, schedule, mask).schedule)


@settings(max_examples=400)
@given(pair=pairs, mask=masks, numbers=shapes())
def test_both_walks_count_the_same(pair: tuple[str, str], mask: str, numbers: dict[str, int]) -> None:
    """Moves of every tensor, tile visits, points of every Einsum, and the most that is held."""
    numbers = fixed(pair[0], numbers)
    ready = walker(*pair, mask)
    assert ready.walk(numbers) == walk(ready.schedule, numbers)


@pytest.mark.parametrize("schedule", ["recurrent", "chunkwise", "chunkwise-materialised"])
@settings(max_examples=60)
@given(numbers=shapes())
def test_both_walks_carry_the_same_states(schedule: str, numbers: dict[str, int]) -> None:
    """A recurrence by token and by chunk; its variants take no mask, so the test above draws few of them."""
    name = "linear-recurrent" if schedule == "recurrent" else "linear-chunkwise"
    ready = Walker(plan(schedule).derive(variant(name).graph()).schedule)
    numbers = fixed(name, numbers)
    assert ready.walk(numbers) == walk(ready.schedule, numbers)


def test_beyond_64_bits_python_s_integers_are_added() -> None:
    """A head dimension of 2^70: K is read twice, exactly."""
    ready = walker("mha", "flash2", "full")
    huge = {**SQUARE, "d": 2**70}
    assert ready.walk(huge) == walk(ready.schedule, huge)
    assert ready.walk(huge).moves["K"] == (16 * 2**70, 0)
    flat = {**SQUARE, "N_q": 2**61, "B_r": 2**61, "h": 5}
    assert ready.walk(flat).moves["Q"] == (5 * 2**62, 0)


def test_a_walk_may_have_no_iterations() -> None:
    """No key is seen: nothing is read, and every row of O is written."""
    numbers = {**SQUARE, "N_q": 9, "N_k": 1, "W": 1}
    ready = walker("mha", "flash2", "causal")
    assert ready.walk(numbers) == walk(ready.schedule, numbers)
    assert ready.walk({**numbers, "N_k": 4, "N_q": 4}).tile_visits == 1


def test_a_missing_number_is_named() -> None:
    """As the plain walk does."""
    without = {name: n for name, n in SQUARE.items() if name != "B_c"}
    with pytest.raises(UnboundError, match="B_c has no value"):
        walker("mha", "flash2", "full").walk(without)


def test_counts_are_python_integers() -> None:
    """Nothing of NumPy leaves the walk: its integers would overflow in what is computed from them."""
    found = walker("mha", "flash1", "full").walk(SQUARE)
    numbers = [n for moved in found.moves.values() for n in moved]
    numbers += [found.tile_visits, *found.points.values(), *found.live.values()]
    assert not [n for n in numbers if isinstance(n, np.generic)]

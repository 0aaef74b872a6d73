"""Keys in the outer loop under several intervals: what stays on chip, against key tiles run one after another."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings

from derive.coverage import Coverage, coverage
from derive.einsum import Index
from derive.errors import DomainError
from derive.evaluate import kept_pairs
from derive.exact import value
from derive.interval import Interval
from derive.mask import Mask
from derive.masks import patterns
from derive.replay import walk
from derive.row_tiles import are_plain, rows_that_stay
from derive.same import Same
from derive.schedule import Loop
from derive.symbols import COPY, ROW, B_c, B_r, N_k, N_q, h
from derive.traffic import traffic
from tests.strategies import derivation, shapes

UNIONS = {p.name: m for p in patterns() if (m := p.mask(N_q, N_k)) is not None and not m.is_one_interval}
MASKS = UNIONS | {p.name: m for p in patterns() if (m := p.mask(N_q, N_k)) is not None and are_plain(m)}
"""One interval has a count of its own: the one made for several must agree with it."""
Q, K = Index("q", N_q), Index("k", N_k)
KEYS = Loop((K,), B_c)
ONE_EACH = {"B_r": 1, "B_c": 1, "d": 1, "d_v": 1, "h": 1, "B": 1}


@cache
def stay(name: str, flattened: bool) -> sp.Expr:
    """Query rows that stay, heads flattened into them or not."""
    rows = Loop((Q, Index("h", h)) if flattened else (Q,), B_r)
    return rows_that_stay(MASKS[name], rows, KEYS)


def run(mask: Mask, numbers: dict[str, int], heads: int) -> int:
    """Rows that stay: key tile after key tile, the row tiles that it meets, the last of which is the first of the next."""
    kept = np.repeat(kept_pairs(mask, numbers), heads, axis=0)
    rows = [kept[start : start + numbers["B_r"]] for start in range(0, len(kept), numbers["B_r"])]
    met = [
        n
        for start in range(0, kept.shape[1], numbers["B_c"])
        for n, part in enumerate(rows)
        if part[:, start : start + numbers["B_c"]].any()
    ]
    return sum(len(rows[n]) for n, before in zip(met[1:], met, strict=False) if n == before)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("flattened", [False, True])
@settings(max_examples=15)
@given(numbers=shapes())
def test_a_row_tile_stays_from_one_key_tile_to_the_next(name: str, flattened: bool, numbers: dict[str, int]) -> None:
    """Ragged tiles, lengths apart, keys that nobody sees in between: row tiles there are several of."""
    heads = numbers["h"] if flattened else 1
    assume(numbers["N_q"] * heads > numbers["B_r"])
    assert value(stay(name, flattened), numbers) == run(MASKS[name], numbers, heads)


@pytest.mark.parametrize("name", UNIONS)
@settings(max_examples=6)
@given(numbers=shapes())
def test_flash1_is_walked_as_it_is_counted(name: str, numbers: dict[str, int]) -> None:
    """Every tensor, one row tile included: it stays over keys that nobody sees as well."""
    cut = derivation("mha", "flash1", name).schedule
    counted = traffic(cut).by_tensor
    for tensor, moved in walk(cut, numbers).moves.items():
        move = counted.get(tensor)
        assert moved == ((value(move.read, numbers), value(move.write, numbers)) if move else (0, 0)), tensor


def test_sinks_and_a_window_of_two_by_hand() -> None:
    """Tiles of one: key 0 brings in 8 queries, key 1 two more, keys 2 to 6 one each beside the one that stays, key 7 none."""
    numbers = ONE_EACH | {"N_q": 8, "N_k": 8, "N_s": 1, "W": 2}
    moves = traffic(derivation("mha", "flash1", "sinks").schedule).by_tensor
    assert value(moves["Q"].read, numbers) == 8 + 2 + 5


def test_one_row_tile_stays_over_keys_that_nobody_sees() -> None:
    """Two queries at the end of 12 keys: the sink and, far behind it, the window meet the tile that stays."""
    numbers = ONE_EACH | {"N_q": 2, "N_k": 12, "N_s": 1, "W": 2, "B_r": 2, "B_c": 2}
    moves = traffic(derivation("mha", "flash1", "sinks").schedule).by_tensor
    assert value(moves["Q"].read, numbers) == 2


def test_an_interval_that_ends_early_may_leave_a_gap() -> None:
    """Queries 0 to 2 see key 0, queries from 2 on key 9: row tile 1 stays over keys 1 to 8, which is not counted."""
    late = Interval(sp.Integer(9), sp.Integer(9), since=sp.Integer(2))
    mask = Mask("apart", "", "q", "k", N_q, N_k, last=sp.Integer(0), until=sp.Integer(3), others=(late,))
    assert run(mask, {"N_q": 6, "N_k": 12, "B_r": 2, "B_c": 2}, 1) == 2
    assert not are_plain(mask)
    with pytest.raises(DomainError, match="under a mask of a few intervals that rise with the query; got for k by B_c"):
        coverage(mask, (KEYS, Loop((Q,), B_r)))


def test_keys_past_the_last_one_meet_no_ragged_tile() -> None:
    """An interval that begins past all keys, where the last tile would reach on: the last query stays for it, none before."""
    past = Interval(ROW + N_k, ROW + N_k + 1)
    mask = Mask("past", "", "q", "k", N_q, N_k, last=ROW, others=(past,))
    numbers = {"N_q": 5, "N_k": 5, "B_r": 1, "B_c": 2}
    assert value(rows_that_stay(mask, Loop((Q,), B_r), KEYS), numbers) == run(mask, numbers, 1) == 1


def test_copies_of_several_keys_are_not_plain() -> None:
    """Which queries see a key of the c-th of them is known where each copy is one key."""
    wide = Mask("wide", "", "q", "k", N_q, N_k, ROW + 3 * COPY, ROW + 3 * COPY + 1, copies=sp.Integer(2))
    assert not are_plain(wide)


def test_keys_apart_in_parts_are_refused_before_minutes_pass() -> None:
    """Three sums inside one another; the sentence says what to leave out."""
    with pytest.raises(DomainError, match=r"dilated in parts of the keys would be added up .*; leave the parts out"):
        traffic(derivation("mha-backward", "flash2-backward-split", "dilated").schedule)


def test_many_key_tiles_are_added_up_at_once() -> None:
    """Twelve million keys in tiles of 64, no term by term: as many stay as of a hundredth, since the last few tiles decide."""
    numbers = {"B_r": 128, "B_c": 64, "W": 1024, "N_s": 4}
    many, few = (value(stay("sinks", False), numbers | {"N_q": n, "N_k": n}) for n in (128 * 10**5, 128 * 10**3))
    assert many == few > 0


def test_brackets_are_numbers_once_both_sides_are() -> None:
    """1 for equal sides, 0 for others, and SymPy reads its text."""
    a, b = sp.symbols("a b", integer=True)
    assert (Same(a, a), Same(sp.Integer(2), sp.Integer(2)), Same(sp.Integer(2), sp.Integer(3))) == (1, 1, 0)
    assert str(Same(a, b)) == "KroneckerDelta(a, b)"
    assert Coverage(MASKS["sinks"], Loop((Q,), B_r), KEYS).query_rows.has(Same)

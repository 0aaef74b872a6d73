"""Masks that list their blocks: pairs, tiles and traffic against the list itself, one pair at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.block_list import Rows, parsed, rectangles
from derive.coverage import coverage
from derive.errors import DomainError
from derive.evaluate import kept_pairs
from derive.exact import value
from derive.masks import Pattern
from derive.symbols import N_k, N_q
from outputs.request import read_request
from rules.derivations import plan
from tests.outputs.command import derive
from tests.rules.meaning import counted, walked


@st.composite
def lists(draw: st.DrawFn) -> tuple[Rows, dict[str, int]]:
    """A list and lengths that it is for: the last blocks may be ragged, and rows may keep nothing."""
    block, down, across = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    ends = draw(st.integers(0, block - 1)), draw(st.integers(0, block - 1))
    row = st.sets(st.integers(0, across - 1)).map(lambda kept: tuple(sorted(kept)))
    rows = tuple(draw(st.lists(row, min_size=down, max_size=down)))
    if not any(rows):
        rows = (*rows[:-1], (across - 1,))
    tiles = {"B_r": draw(st.integers(1, 7)), "B_c": draw(st.integers(1, 7))}
    return rows, {"N_q": down * block - ends[0], "N_k": across * block - ends[1], "C_b": block, **tiles}


def plainly(rows: Rows, numbers: dict[str, int]) -> Any:
    """Which pairs are kept, looked up in the list."""
    kept = np.zeros((numbers["N_q"], numbers["N_k"]), bool)
    for q, k in np.ndindex(*kept.shape):
        kept[q, k] = k // numbers["C_b"] in rows[q // numbers["C_b"]]
    return kept


@settings(max_examples=120, deadline=None)
@given(lists())
def test_what_is_kept_is_what_the_list_says(drawn: tuple[Rows, dict[str, int]]) -> None:
    """Pair by pair; and so are the counts of pairs, keys and queries, and of tiles of any size that meet a kept pair."""
    rows, numbers = drawn
    kept = plainly(rows, numbers)
    mask = Pattern("blocks", frozenset(("block", "blocks")), (), rows).mask(N_q, N_k)
    assert mask is not None
    assert (kept_pairs(mask, numbers) == kept).all()
    assert value(mask.pairs, numbers) == kept.sum()
    assert value(mask.keys_touched, numbers) == kept.any(axis=0).sum()
    assert value(mask.rows_touched, numbers) == kept.any(axis=1).sum()
    loops = plan("flash2").derive(variant("mha").graph()).schedule.kernels[0].loops
    met = coverage(mask, loops)
    assert met is not None
    cut = [range(0, numbers[n], numbers[t]) for n, t in (("N_q", "B_r"), ("N_k", "B_c"))]
    tiles = sum(kept[i : i + numbers["B_r"], j : j + numbers["B_c"]].any() for i in cut[0] for j in cut[1])
    assert value(met.tiles, numbers) == tiles


@settings(max_examples=25, deadline=None)
@given(lists(), st.sampled_from(("flash2", "naive", "row-resident")))
def test_traffic_under_a_list_is_the_walker_s(drawn: tuple[Rows, dict[str, int]], name: str) -> None:
    """Tiles need divide neither the blocks nor the lengths."""
    rows, numbers = drawn
    pattern = Pattern("blocks", frozenset(("block", "blocks")), (), rows)
    schedule = plan(name).derive(variant("mha").graph(pattern)).schedule
    numbers = {**numbers, "d": 2, "d_v": 3, "h": 2, "B": 1}
    assert counted(schedule, numbers) == walked(schedule, numbers)


def test_like_runs_make_one_rectangle() -> None:
    """A column of blocks is one interval, however many rows it has; a run that ends makes room for another."""
    assert rectangles(((0, 1), (0, 1), (0, 1, 2), (), (2,))) == [(0, 2, 0, 2), (0, 3, 2, 3), (2, 3, 4, 5)]


def test_a_list_is_written_in_ranges_or_in_a_file(tmp_path: Path) -> None:
    """Rows apart by /, or a line each."""
    wanted = ((0,), (0, 2, 3), ())
    assert parsed(["0", "0,2-3", "-"]) == wanted
    file = tmp_path / "kept"
    file.write_text("0\n0,2-3\n-\n", encoding="ascii")
    request = read_request(variant("mha"), ("Nq=11", "Nk=16", "block=4", "mask=blocks", f"blocks=@{file}"))
    assert request.pattern.kept == wanted
    assert str(request.pattern) == "blocks blocks=0/0,2,3/-"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("block=5 blocks=0,0/1/-/-/-", "blocks: row 0 names block 0 twice"),
        ("block=5 blocks=0/9/-/-/-", "blocks names block 9, and 23 keys in blocks of 5 have blocks 0 to 4; name these"),
        ("block=5 blocks=0", "blocks lists 1 rows, and 23 queries in blocks of 5 have 5; list each"),
        ("block=5 blocks=-/-/-/-/-", "blocks: no block is kept, so no query would see a key"),
        (
            "block=0 blocks=0",
            "block=0: queries, and keys, of a block of a mask that names its blocks must be at least 1",
        ),
        ("block=5 blocks=0;1", "blocks: '0;1' is no block of keys"),
        ("block=5 blocks=3-1", "blocks: 3-1 runs backwards"),
        ("block=5 blocks=1-", "blocks: '1-' is no block of keys"),
        ("block=5 blocks=@nowhere", "blocks=@nowhere cannot be read (No such file or directory)"),
        ("block=5", "mask=blocks needs the kept blocks of each row, such as blocks=0/0,1/0,2"),
        ("blocks=0", "mask=blocks lists the blocks of one length; give N= and block="),
        (
            "block=1 blocks=" + "/".join("0,2,4" if n % 2 else "1,3,5" for n in range(23)),
            "rectangles of blocks are too many",
        ),
    ],
)
def test_a_list_that_is_none_is_refused_in_one_sentence(words: str, says: str) -> None:
    """Exit code 2, the value and the way out."""
    answer = derive("explain", "mha", "N=23", "d=4", "mask=blocks", *words.split())
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert len(answer.err.splitlines()) == 1


def test_keys_outside_are_refused() -> None:
    """A query's keys need not follow those of the one before."""
    pattern = Pattern("blocks", frozenset(("block", "blocks")), (), ((1,), (0,)))
    schedule = plan("flash1").derive(variant("mha").graph(pattern)).schedule
    with pytest.raises(DomainError, match="tiles skipped under blocks are counted with rows on the grid"):
        counted(schedule, {"N_q": 4, "N_k": 4, "C_b": 2, "B_r": 1, "B_c": 1, "d": 1, "d_v": 1, "h": 1, "B": 1, "M": 8})

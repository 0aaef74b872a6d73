"""Masks that list their blocks: pairs, tiles and traffic against the list itself, one pair at a time."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.block_list import BlockList, parsed, rectangles
from derive.coverage import coverage
from derive.errors import DomainError
from derive.evaluate import kept_pairs
from derive.exact import value
from derive.masks import Pattern
from derive.met_blocks import COUNTS, Rows
from derive.met_blocks import met as looked_up
from derive.symbols import N_k, N_q
from outputs.python_form import LOOKUP
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


def met_plainly(kept: Any, rows: int, keys: int) -> dict[str, int]:
    """What is counted of the tiles of *rows* by *keys* in which some pair is kept, one tile after another."""
    found = dict.fromkeys(COUNTS, 0)
    for i, j in product(range(0, kept.shape[0], rows), range(0, kept.shape[1], keys)):
        tile = kept[i : i + rows, j : j + keys]
        if tile.any():
            sizes = (1, tile.shape[0], tile.shape[1], tile.size)
            found = {what: found[what] + n for what, n in zip(COUNTS, sizes, strict=True)}
    return found


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
    counts = met_plainly(kept, numbers["B_r"], numbers["B_c"])
    for what, amount in (
        ("tiles", met.tiles),
        ("rows", met.query_rows_met),
        ("keys", met.key_rows),
        ("pairs", met.pairs),
    ):
        assert value(amount, numbers) == counts[what], what
    in_rows, in_keys = met_plainly(kept, numbers["B_r"], 23), met_plainly(kept, 23, numbers["B_c"])
    assert value(met.row_tiles, numbers) == in_rows["tiles"]
    assert value(met.query_rows_once, numbers) == in_rows["rows"]
    assert value(met.key_tiles_once, numbers) == in_keys["tiles"]
    assert value(met.key_rows_once, numbers) == in_keys["keys"]


@settings(max_examples=25, deadline=None)
@given(lists(), st.sampled_from(("flash2", "naive", "row-resident")))
def test_traffic_under_a_list_is_the_walker_s(drawn: tuple[Rows, dict[str, int]], name: str) -> None:
    """Tiles need divide neither the blocks nor the lengths."""
    rows, numbers = drawn
    pattern = Pattern("blocks", frozenset(("block", "blocks")), (), rows)
    schedule = plan(name).derive(variant("mha").graph(pattern)).schedule
    numbers = {**numbers, "d": 2, "d_v": 3, "h": 2, "B": 1}
    assert counted(schedule, numbers) == walked(schedule, numbers)


@settings(max_examples=60, deadline=None)
@given(lists(), st.data())
def test_pairs_of_a_part_are_those_of_the_list(drawn: tuple[Rows, dict[str, int]], data: st.DataObject) -> None:
    """What devices hold: some queries and some keys, anywhere, perhaps none."""
    rows, numbers = drawn
    mask = Pattern("blocks", frozenset(("block", "blocks")), (), rows).mask(N_q, N_k)
    assert isinstance(mask, BlockList)
    ends = [sorted(data.draw(st.tuples(*[st.integers(0, numbers[n])] * 2))) for n in ("N_q", "N_k")]
    (first, past), (left, right) = ends
    queries, keys = ((sp.Integer(a), sp.Integer(z)) for a, z in ends)
    assert value(mask.pairs_in(queries, keys), numbers) == plainly(rows, numbers)[first:past, left:right].sum()


@settings(max_examples=60, deadline=None)
@given(lists(), st.sampled_from(COUNTS))
def test_generated_code_looks_up_the_same(drawn: tuple[Rows, dict[str, int]], what: str) -> None:
    """The module that `derive code` writes has a lookup of its own."""
    rows, numbers = drawn
    sizes = [numbers[n] for n in ("N_q", "N_k", "B_r", "B_c", "C_b", "C_b")]
    scope: dict[str, Any] = {"_BLOCKS": rows}
    exec("from __future__ import annotations\n" + LOOKUP, scope)
    kept = plainly(rows, numbers)
    assert scope["_met"](what, *sizes) == met_plainly(kept, numbers["B_r"], numbers["B_c"])[what]
    assert looked_up(what, *sizes, rows) == scope["_met"](what, *sizes)


def test_hundreds_of_blocks_are_one_function_of_the_tiles(tmp_path: Path) -> None:
    """A form is no longer for a longer list, and so is quickly written, as text, page and code."""
    lines = ["0,5,7,9,20-31" if n % 2 else f"1,{n}" for n in range(64)]
    (tmp_path / "kept").write_text("\n".join(lines), encoding="ascii")
    words = (
        "mha",
        "N=8192",
        "d=128",
        "mask=blocks",
        "block=128",
        f"blocks=@{tmp_path / 'kept'}",
        "--schedule",
        "flash2",
    )
    answer = derive("explain", *words)
    assert "4 B_r B_c d tiles(B_r, B_c)" in answer.out
    assert "d b (N + rows(B_r, N) + 2 keys(B_r, B_c))" in answer.out
    for command, name in (("code", "forms.py"), ("report", "page.html"), ("paper", "body.tex")):
        assert derive(command, *words, "-o", str(tmp_path / name)).code == 0
    ran = subprocess.run(
        (sys.executable, "-m", "doctest", str(tmp_path / "forms.py")), capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, b"")


def test_the_last_row_of_blocks_goes_on_to_the_last_row() -> None:
    """5 rows in blocks of 2 of which two are listed: rows 2 to 4 see what the second lists, here block 1 of keys."""
    sizes = {"rows": 5, "keys": 4, "row_tile": 1, "key_tile": 2, "row_block": 2, "key_block": 2}
    assert looked_up("tiles", **sizes, kept=((0,), (1,))) == 5
    assert looked_up("pairs", **sizes, kept=((), (1,))) == 3 * 2


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
        ("block=5 blocks=999999/0/-/-/-", "blocks names block 999999, and 23 keys"),
        ("block=5 blocks=1000000/0/-/-/-", "blocks: '1000000' is no block of keys"),
        ("block=5 blocks=3-1", "blocks: 3-1 runs backwards"),
        ("block=5 blocks=1-", "blocks: '1-' is no block of keys"),
        ("block=5 blocks=@nowhere", "blocks=@nowhere cannot be read (No such file or directory)"),
        ("block=5", "mask=blocks needs the kept blocks of each row, such as blocks=0/0,1/0,2"),
        ("blocks=0", "mask=blocks lists the blocks of one length; give N= and block="),
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

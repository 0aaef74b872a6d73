from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from derive.errors import BadValueError
from outputs.sweep import grid
from tests.outputs.command import derive


def swept(folder: Path, *words: str) -> list[dict[str, str]]:
    """The rows of ``derive sweep WORDS...``."""
    target = folder / "table.csv"
    answer = derive("sweep", *words, "-o", str(target), "--force")
    assert answer.code == 0, answer.err
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert answer.err == f"wrote {target}: {len(rows)} rows\n"
    return rows


def test_lists_and_ranges_are_written_out() -> None:
    """By factors, by steps, both ends in; the last key is the fastest; a list of documents is one value."""
    assert grid(("N=1K:4K:2x", "d=64,96:128:32")) == [
        (f"N={n}", f"d={d}") for n in (1024, 2048, 4096) for d in (64, 96, 128)
    ]
    assert grid(("mask=full,causal",)) == [("mask=full",), ("mask=causal",)]
    assert grid(("docs=512,512",)) == [("docs=512,512",)]
    assert grid(()) == [()]


@pytest.mark.parametrize(
    "word", ["N=1K:2K", "N=2K:1K:2x", "N=1:8:1x", "N=1:8:0", "N=a:8:2x", "N=1:8:2x:3", "N=0:8:1", "N=1:8:-1"]
)
def test_a_range_that_is_none_is_refused(word: str) -> None:
    """With the value shown, and what would be right."""
    with pytest.raises(BadValueError, match="a range is FIRST:LAST:STEP, such as 1K:128K:2x"):
        grid((word,))


def test_too_many_rows_are_refused() -> None:
    """Before any is computed."""
    with pytest.raises(BadValueError, match="more than 20000 combinations"):
        grid(("N=1:200:1", "d=1:200:1"))
    with pytest.raises(BadValueError, match="more than 20000 values"):
        grid(("N=1:100000:1",))


def test_every_row_is_what_explain_says(tmp_path: Path) -> None:
    """Counts are equal, times too, under the same keys."""
    rows = swept(tmp_path, "gqa", "N=1000,8K", "d=64", "h=8", "hk=2,8", "mask=full,causal", "--on", "h100-sxm")
    assert len(rows) == 2 * 2 * 2 * 2
    for row in rows[::3]:
        words = [f"N={row['N_k']}", f"d={row['d']}", f"h={row['h']}", f"hk={row['h_k']}", f"mask={row['mask']}"]
        told: Any = derive("explain", "gqa", *words, "--on", "h100-sxm", "--schedule", row["schedule"], "--json").json
        schedule = told["schedules"][row["schedule"]]
        for count in ("compulsory", "sm", "dram"):
            assert int(row[f"{count}_bytes"]) == schedule["bytes"][count]["value"]
        assert int(row["matmul_flop"]) == schedule["flops"]["executed"]["value"]
        assert int(row["hbm_peak_bytes"]) == schedule["memory_peak"]["value"]
        assert row["shared_memory_bytes"] == str(schedule["footprint"]["value"] or "")
        assert float(row["seconds"]) == schedule["time"]["seconds"]
        assert float(row["flop_per_dram_byte"]) == schedule["intensity"]
        assert row["bound"] == schedule["time"]["bound"]
        assert row["error"] == ""


def test_what_cannot_exist_is_a_row_with_its_reason(tmp_path: Path) -> None:
    """Tiles that do not fit leave the counts empty; the others are there."""
    rows = swept(tmp_path, "mha", "N=8K", "d=128", "Br=128,4096", "--schedule", "flash2", "--on", "h100-sxm")
    assert [r["sm_bytes"] for r in rows] == ["272629760", ""]
    assert rows[1]["B_r"] == "4096"
    assert rows[1]["N_q"] == rows[1]["N_k"] == "8192"
    assert "the largest B_r that fits is 640" in rows[1]["error"]


def test_counts_beyond_machine_words_stay_exact(tmp_path: Path) -> None:
    """No float stands in between."""
    (row,) = swept(tmp_path, "mha", f"N={10**15 + 1}", "d=128", "--schedule", "naive")
    assert int(row["matmul_flop"]) == 4 * (10**15 + 1) ** 2 * 128


def test_parquet_holds_the_same_table(tmp_path: Path) -> None:
    """Whole numbers as such; what 64 bits cannot hold is refused."""
    if not os.environ.get("CI"):
        pytest.importorskip("pyarrow", reason="no pyarrow on this machine; pip install 'attn-derive[parquet]'")
    import pyarrow.parquet as pq

    words = ("mha", "N=1K,2K", "d=64")
    target = tmp_path / "table.parquet"
    assert derive("sweep", *words, "-o", str(target)).code == 0
    read = pq.read_table(target).to_pylist()
    rows = swept(tmp_path, *words)
    assert [{k: "" if v is None else str(v) for k, v in r.items()} for r in read] == rows
    assert isinstance(read[0]["sm_bytes"], int)
    large = derive("sweep", "mha", f"N={10**15}", "d=128", "-o", str(target), "--force")
    assert large.code == 2
    assert "does not fit the 64 bits of a Parquet integer" in large.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("mha", "N=8", "-o", "x.txt"), "name a file that ends in .csv or .parquet"),
        (("mha", "N=8:", "-o", "x.csv"), "a range is FIRST:LAST:STEP"),
        (("mha", "N=8,,9", "-o", "x.csv"), "is not KEY=VALUE"),
        (("mha", "q=8", "-o", "x.csv"), "symbol"),
        (("mha", "N=8", "--schedule", ",", "-o", "x.csv"), "--schedule names no schedule"),
        (("mha", "N=8", "-o", "no/such/x.csv"), "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    answer = derive("sweep", *words)
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that says what to install, or to write CSV."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = derive("sweep", "mha", "N=8", "d=8", "-o", str(tmp_path / "x.parquet"))
    assert answer.code == 2
    assert "pip install 'attn-derive[parquet]', or name FILE.csv" in answer.err
    assert list(tmp_path.iterdir()) == []

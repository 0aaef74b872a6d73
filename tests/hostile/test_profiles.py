# ruff: noqa: E501  (tables)
"""``derive confront --data``: any CSV, and what is none, gives residuals or one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.errors import DeriveError
from outputs.confront.profile_csv import COLUMNS, read_profile
from outputs.testing.table import LARGEST_FILE, number, read_table
from tests.hostile.junk import JUNK, junk, with_junk
from tests.hostile.test_command_line import answer
from tests.hostile.world import examples, harmless

QUESTION = ("confront", "mha", "N=1024", "d=64", "--on", "h100-sxm", "--schedule", "flash2", "--data")
_HEADS = st.sampled_from(
    [*COLUMNS, "Kernel Name", "Metric Name", "Metric Value", "Metric Unit", "ID", "dram__bytes_read.sum [Mbyte]"]
)
_CELLS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.sampled_from(["8,388,608", "1.5", "nan", "inf", "-inf", "", "byte", "Mbyte", "usecond", "flash", "1e99", "1e-99", "-3", "0", *COLUMNS]),
)  # fmt: skip
FILES: dict[str, bytes] = {
    "nothing": b"",
    "heads alone": b"dram__bytes_read.sum\n",
    "a NUL": b"dram__bytes_read.sum\n8\x00\n",
    "NULs": b"\x00" * 10_000,
    "UTF-16": "Kernel Name,dram__bytes_read.sum\nf,8\n".encode("utf-16"),
    "NaN": b"Kernel Name,dram__bytes_read.sum\nf,nan\n",
    "infinity": b"Kernel Name,dram__bytes_read.sum\nf,inf\n",
    "minus infinity": b"Kernel Name,dram__bytes_read.sum\nf,-Infinity\n",
    "full-width digits": "Kernel Name,dram__bytes_read.sum\nf,\uff18\n".encode(),
    "beyond a float": b"Kernel Name,dram__bytes_read.sum,dram__bytes_write.sum\nf,1e999,1e999\n",
    "below a float": b"Kernel Name,dram__bytes_read.sum\nf,1e-999\n",
    "the largest that is read": b"Kernel Name,dram__bytes_read.sum [Tbyte]\nf," + b"9" * 57 + b"e99\n",
    "digits without end": b"Kernel Name,dram__bytes_read.sum\nf," + b"9" * 100_000 + b"\n",
    "a quote that stays open": b'Kernel Name,dram__bytes_read.sum\n"f,8\n',
    "a cell of a megabyte": b"Kernel Name,dram__bytes_read.sum\n" + b"f" * 2**20 + b",8\n",
    "many columns": b",".join([b"x"] * 100_000) + b"\n" + b",".join([b"1"] * 100_000) + b"\n",
    "many rows": b"Kernel Name,dram__bytes_read.sum\n" + b"f,8\n" * 200_001,
    "many kernels": b"Kernel Name,dram__bytes_read.sum\n" + b"".join(b"f%d,%d\n" % (n, n) for n in range(20_000)),
    "code for a name": b"Kernel Name,dram__bytes_read.sum\n__import__('os').system('touch canary'),8\n",
    "code for a number": b"Kernel Name,dram__bytes_read.sum\nf,__import__('os').system('touch canary')\n",
    "code for a unit": b"Kernel Name,dram__bytes_read.sum [__import__('os')]\nf,8\n",
    "a name that moves the cursor": b"Kernel Name,dram__bytes_read.sum\n\x1b[31mf\x1b]0;canary\x07,8\n",
    "half a character": b"Kernel Name,dram__bytes_read.sum\nf\xed\xa0\x80,8\n",
    "line ends of every kind": b"Kernel Name,dram__bytes_read.sum\rf,8\r\n\x0bg,8\x0c\xc2\x85h,8\xe2\x80\xa8i,8\n",
    "a rate above one": b"Kernel Name,lts__t_sector_hit_rate.pct\nf,101\n",
    "time of nothing": b"Kernel Name,gpu__time_duration.sum,dram__bytes_read.sum\nf,0,8\n",
    "hits of nothing": b"Name,TCC_HIT_sum,TCC_MISS_sum,FETCH_SIZE\nf,0,0,8\n",
    "a column twice": b"Kernel Name,dram__bytes_read.sum,dram__bytes_read.sum\nf,8,9\n",
    "names without values": b"Metric Name,Metric Value\n,\n",
    "units alone": b"Kernel Name,dram__bytes_read.sum\n,Mbyte\n",
}
LONG_LINE = 100 * 2**20
"""Bytes of a line that is never read whole."""


@pytest.mark.parametrize("raw", FILES.values(), ids=FILES)
def test_a_file_is_read_or_refused(raw: bytes, tmp_path: Path) -> None:
    """By the command, in text and as JSON; what a kernel is called never reaches the terminal raw."""
    path = tmp_path / "ncu.csv"
    path.write_bytes(raw)
    found = answer(*QUESTION, str(path))
    assert "\x1b" not in found.out
    answer(*QUESTION, str(path), "--json")
    harmless(lambda: read_table(path), (DeriveError,))
    assert path.read_bytes() == raw
    assert [p.name for p in tmp_path.iterdir()] == ["ncu.csv"]


def test_a_long_line_is_not_read(tmp_path: Path) -> None:
    """100 MB in one line: refused at 16 MiB."""
    path = tmp_path / "ncu.csv"
    with path.open("wb") as file:
        file.truncate(LONG_LINE)  # no byte of it is on the disk
    found = answer(*QUESTION, str(path))
    assert f"at most {LARGEST_FILE} (16 MiB) are read" in found.err


def test_no_junk_is_a_number() -> None:
    """Of every junk word only plain numbers of plain digits pass."""
    for word in JUNK:
        refusal = harmless(lambda word=word: number(word, "a cell"), (DeriveError,))
        assert refusal is not None or (word.strip().isascii() and len(word.strip()) <= 60), ascii(word)


@settings(max_examples=examples(100))
@given(heads=st.lists(with_junk(_HEADS), min_size=1, max_size=5), rows=st.lists(st.lists(with_junk(_CELLS), max_size=5), max_size=4),
       kernel=with_junk(st.just("")))  # fmt: skip
def test_any_table_is_a_profile_or_refused(
    tmp_path_factory: pytest.TempPathFactory, heads: list[str], rows: list[list[str]], kernel: str
) -> None:
    """Real heads and cells, and junk for each."""
    path = tmp_path_factory.getbasetemp() / "ncu.csv"
    full = [(row + ["0"] * 5)[: len(heads)] for row in rows]
    path.write_text("\n".join(",".join(row) for row in (heads, *full)), encoding="utf-8", errors="surrogatepass")
    harmless(lambda: read_profile(path, kernel), (DeriveError,))
    harmless(lambda: read_table(path), (DeriveError,))


@settings(max_examples=examples(10))
@given(cells=st.dictionaries(st.sampled_from(list(COLUMNS)), _CELLS, min_size=1, max_size=6))
def test_any_counters_are_confronted(tmp_path_factory: pytest.TempPathFactory, cells: dict[str, str]) -> None:
    """Counters of any size, none of them or all: an answer in text, or one sentence."""
    path = tmp_path_factory.getbasetemp() / "ncu.csv"
    path.write_text(
        f"{','.join(cells)}\n{','.join(cell.replace(',', '') for cell in cells.values())}\n", encoding="utf-8"
    )
    answer(*QUESTION, str(path))


@settings(max_examples=examples(50))
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    """Bytes alone."""
    path = tmp_path_factory.getbasetemp() / "ncu.csv"
    path.write_bytes(raw)
    harmless(lambda: read_profile(path), (DeriveError,))


@given(junk)
@settings(max_examples=examples(30))
def test_any_kernel_s_name_is_looked_for(tmp_path_factory: pytest.TempPathFactory, word: str) -> None:
    """``--kernel`` is text to be found, no pattern."""
    path = tmp_path_factory.getbasetemp() / "ncu.csv"
    path.write_text("Kernel Name,dram__bytes_read.sum\nflash,8\n", encoding="utf-8")
    refusal = harmless(lambda: read_profile(path, word), (DeriveError,))
    assert (refusal is None) == (word in "flash")

"""What three of each column are, and one of each unit, as the tools' own documentation has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from outputs.confront.columns import COLUMNS, UNITS
from outputs.confront.profile_csv import read_profile
from outputs.confront.requests import COLUMNS as REQUESTS

THREE = {
    "dram__bytes_read.sum": ("dram read", 3),
    "dram__bytes_write.sum": ("dram write", 3),
    "dram__bytes.sum": ("dram", 3),
    "dram__sectors_read.sum": ("dram read", 96),
    "dram__sectors_write.sum": ("dram write", 96),
    "lts__t_sectors.sum": ("l2", 96),
    "lts__t_bytes.sum": ("l2", 3),
    "lts__t_sectors_op_read.sum": ("l2 read", 96),
    "lts__t_sectors_op_write.sum": ("l2 write", 96),
    "lts__t_sector_hit_rate.pct": ("hit rate", 0.03),
    "L2 Hit Rate": ("hit rate", 0.03),
    "gpu__time_duration.sum": ("seconds", 3e-9),
    "gpu__time_duration.avg": ("seconds", 3e-9),
    "Duration": ("seconds", 3e-9),
    "Avg": ("seconds", 3e-9),
    "FETCH_SIZE": ("dram read", 3072),
    "WRITE_SIZE": ("dram write", 3072),
    "FetchSize": ("dram read", 3072),
    "WriteSize": ("dram write", 3072),
    "L2CacheHit": ("hit rate", 0.03),
    "DurationNs": ("seconds", 3e-9),
    "AverageNs": ("seconds", 3e-9),
}
PARTS = {"TCC_HIT_sum", "TCC_MISS_sum", *REQUESTS}
"""Columns that make a counter together with others."""


def counters(text: str, path: Path) -> dict[str, float]:
    """What a file of *text* counts."""
    target = path / "export.csv"
    target.write_text(text, encoding="utf-8")
    return {name: float(amount) for name, amount in read_profile(target).counters.items()}


@pytest.mark.parametrize("column", THREE)
def test_three_of_a_column(column: str, tmp_path: Path) -> None:
    """In bytes, seconds or a share, where no unit is stated."""
    name, amount = THREE[column]
    assert counters(f"Kernel Name,{column}\nf,3\n", tmp_path) == {name: pytest.approx(amount)}


def test_every_column_is_told_here() -> None:
    """A new one needs its line."""
    assert set(COLUMNS) == {*THREE, *PARTS}


@pytest.mark.parametrize(
    ("column", "unit", "amount"),
    [
        ("dram__bytes_read.sum", unit, amount)
        for units, amount in (
            (("byte", "B", ""), 1), (("Kbyte", "KB", "kB"), 1e3), (("Mbyte", "MB"), 1e6), (("Gbyte", "GB"), 1e9),
            (("Tbyte", "TB"), 1e12), (("KiB", "kib"), 2**10), (("MiB",), 2**20), (("GiB",), 2**30), (("TiB",), 2**40),
        )
        for unit in units
    ]
    + [("FETCH_SIZE", "", 1024), ("FETCH_SIZE", "byte", 1), ("lts__t_sectors.sum", "Ksector", 32_000)]
    + [
        ("gpu__time_duration.sum", unit, amount)
        for units, amount in (
            (("s", "second"), 1), (("ms", "msecond"), 1e-3), (("us", "usecond", "\u00b5s", "\u03bcs"), 1e-6),
            (("ns", "nsecond", ""), 1e-9),
        )
        for unit in units
    ],
)  # fmt: skip
def test_one_of_a_unit(column: str, unit: str, amount: float, tmp_path: Path) -> None:
    """Behind the head, in a row below it, or none; a K is a thousand, a Ki is 1024."""
    for text in (f"Kernel Name,{column} [{unit}]\nf,1\n", f"Kernel Name,{column}\n,{unit}\nf,1\n" if unit else ""):
        if text:
            assert list(counters(text, tmp_path).values()) == [pytest.approx(amount)]


def test_shares_of_several_kernels_do_not_add(tmp_path: Path) -> None:
    """Nor have they a mean without the requests they are shares of."""
    text = "Kernel Name,dram__bytes_read.sum,lts__t_sector_hit_rate.pct\nf,3,90\ng,4,80\n"
    assert counters(text, tmp_path) == {"dram read": 7}


def test_a_duration_that_is_stated_goes_before_stamps(tmp_path: Path) -> None:
    """As rocprof writes both."""
    assert counters("KernelName,BeginNs,EndNs,DurationNs\nf,100,900,300\n", tmp_path) == {
        "seconds": pytest.approx(3e-7)
    }
    assert set(UNITS) >= {"", "%", "byte", "kib", "us"}

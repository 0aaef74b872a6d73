"""``derive confront`` as a program: profilers' files in their forms, readings that fit, and files that are refused."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from outputs.confront.profile_csv import read_profile
from tests.outputs.command import Answer, derive

SCHEMA = json.loads((files("outputs") / "schema" / "confront.json").read_text(encoding="utf-8"))
MIB = 2**20
WIDE = """==PROF== Connected to process 1
"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","lts__t_sectors_op_read.sum","gpu__time_duration.sum"
"","","Mbyte","Kbyte","sector","usecond"
"0","flash_fwd","6.25","1,000","8,454,144","55.0"
"1","flash_fwd","6.35","1,200","8,454,144","57.0"
"""
LONG = """"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","flash_fwd","dram__bytes_read.sum","Mbyte","6.3"
"0","flash_fwd","dram__bytes_write.sum","Mbyte","1.1"
"0","flash_fwd","lts__t_sectors_op_read.sum","sector","8,454,144"
"0","flash_fwd","gpu__time_duration.sum","us","56"
"0","flash_fwd","sm__warps_active.avg","warp","n/a"
"""
_UNITS = (
    "dram__bytes_read.sum [Mbyte]",
    "dram__bytes_write.sum [Mbyte]",
    "lts__t_sectors_op_read.sum",
    "gpu__time_duration.sum [us]",
)
HEADS = ",".join(("Kernel Name", *_UNITS)) + "\nflash_fwd,6.3,1.1,8454144,56\n"
BARE = """Kernel Name,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors_op_read.sum,gpu__time_duration.sum
flash_fwd,6300000,1100000,8454144,56000
"""


def written(path: Path, text: str) -> Path:
    """A file of *text*."""
    target = path / "profile.csv"
    target.write_text(text, encoding="utf-8")
    return target


def confront(path: Path, *words: str) -> Answer:
    """``derive confront mha`` on a file."""
    return derive("confront", "mha", "--data", str(path), "--schedule", "flash2", *words)


@pytest.mark.parametrize("text", [WIDE, LONG, HEADS, BARE], ids=["units row", "long", "units in heads", "no units"])
def test_every_form_of_a_profile_reads_alike(text: str, tmp_path: Path) -> None:
    """Units rows, units in brackets, thousands, one metric a row, none stated: bytes and seconds are the same."""
    found = read_profile(written(tmp_path, text))
    assert found.names == ("flash_fwd",)
    known = {"dram read": 6_300_000, "dram write": 1_100_000, "l2 read": 8_454_144 * 32}
    assert {name: int(found.counters[name]) for name in known} == known
    assert float(found.counters["seconds"]) == pytest.approx(56e-6)


def test_rocprof_counts_in_kib_and_gives_a_hit_rate(tmp_path: Path) -> None:
    """FETCH_SIZE and WRITE_SIZE are KiB; hits and misses make a rate; two kernels add up, and one is chosen by its name."""
    text = (
        "Index,KernelName,FETCH_SIZE,WRITE_SIZE,TCC_HIT_sum,TCC_MISS_sum,DurationNs\n"
        "0,scores,6144,2048,900,100,50000\n1,combine,1024,1024,0,100,9000\n"
    )
    both = read_profile(written(tmp_path, text))
    assert (both.counters["dram read"], both.counters["dram write"]) == (7 * MIB, 3 * MIB)
    one = read_profile(written(tmp_path, text), "scor")
    assert (one.names, float(one.counters["hit rate"])) == (("scores",), 0.9)
    assert float(one.counters["seconds"]) == 5e-5


@pytest.mark.parametrize("unit", ["EA", "EA0"])
def test_requests_of_several_sizes_are_bytes(tmp_path: Path, unit: str) -> None:
    """Of 1000 reads 100 have 32 B and 200 have 128 B, the others 64 B; of 500 writes 400 have 64 B, the others 32 B."""
    heads = (
        f"TCC_{unit}_RDREQ_sum,TCC_{unit}_RDREQ_32B_sum,TCC_BUBBLE_sum,TCC_{unit}_WRREQ_sum,TCC_{unit}_WRREQ_64B_sum"
    )
    found = read_profile(written(tmp_path, f"Kernel_Name,{heads}\nattend,1000,100,200,500,400\n"))
    assert found.counters["dram read"] == 100 * 32 + 200 * 128 + 700 * 64
    assert found.counters["dram write"] == 400 * 64 + 100 * 32
    without = read_profile(
        written(tmp_path, f"KernelName,{heads.replace('TCC_BUBBLE_sum,', '')}\nattend,1000,100,500,400\n")
    )
    assert without.counters["dram read"] == 100 * 32 + 900 * 64
    known = read_profile(written(tmp_path, f"KernelName,FETCH_SIZE,TCC_{unit}_RDREQ_sum\nattend,8,1000\n"))
    assert known.counters == {"dram read": 8192}


def test_requests_may_all_be_of_one_size(tmp_path: Path) -> None:
    """No request is left for the other size."""
    heads = "TCC_EA0_RDREQ_sum,TCC_EA0_RDREQ_32B_sum,TCC_BUBBLE_sum,TCC_EA0_WRREQ_sum,TCC_EA0_WRREQ_64B_sum"
    found = read_profile(written(tmp_path, f"Kernel_Name,{heads}\nattend,10,4,6,5,5\n"))
    assert found.counters == {"dram read": 4 * 32 + 6 * 128, "dram write": 5 * 64}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("KernelName,TCC_EA_RDREQ_sum\nf,10\n", "export both TCC_EA_RDREQ_sum and TCC_EA_RDREQ_32B_sum, or FETCH_SIZE"),
        ("KernelName,TCC_EA_WRREQ_64B_sum\nf,10\n", "TCC_EA_WRREQ_64B_sum, or WRITE_SIZE"),
        ("KernelName,TCC_EA_RDREQ_sum,TCC_EA_RDREQ_32B_sum\nf,10,11\n", "fewer reads in all than reads of 32 B"),
        ("Kernel_Name,FETCH_SIZE,Start_Timestamp,End_Timestamp\nf,10,9,8\n", "ends 1 ns before it starts"),
    ],
)
def test_requests_that_leave_the_bytes_open_are_refused(tmp_path: Path, text: str, says: str) -> None:
    """One sentence with what to export."""
    answer = confront(written(tmp_path, text), "N=8192", "d=128", "--on", "mi300x")
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err


def test_rocprofv3_has_a_row_for_each_counter(tmp_path: Path) -> None:
    """Two launches of one kernel are averaged, each timed once by its stamps."""
    heads = "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp"
    rows = [
        f"{n},attend,{counter},{value},{1000 * n},{1000 * n + 400 + 200 * n}"
        for n in (1, 2)
        for counter, value in (("FETCH_SIZE", 8 * n), ("WRITE_SIZE", 4), ("TCC_HIT_sum", 90), ("TCC_MISS_sum", 10))
    ]
    found = read_profile(written(tmp_path, "\n".join([heads, *rows]) + "\n"))
    assert found.launches == 2
    assert {name: float(n) for name, n in found.counters.items()} == {
        "dram read": 12 * 1024,
        "dram write": 4096,
        "hit rate": 0.9,
        "seconds": 700e-9,
    }


def _found(tmp_path: Path, read: float, *words: str) -> dict[str, Any]:
    """The JSON for a profile with *read* bytes read."""
    path = written(tmp_path, f"Kernel Name,dram__bytes_read.sum,dram__bytes_write.sum\nf,{int(read)},{32 * MIB}\n")
    answer = confront(path, *words, "--json")
    assert answer.code == 0, answer.err
    jsonschema.validate(answer.json, SCHEMA)
    found: dict[str, Any] = answer.json["schedules"]["flash2"]
    return found


LONG_QUESTION = ("N=131072", "d=128", "--on", "h100-sxm")


@pytest.mark.parametrize(
    ("read", "fits"),
    [
        (96 * MIB, "resident"),
        (544 * MIB, "waves"),
        (65_568 * MIB, "no reuse"),
        (4000 * MIB, None),
        (90 * MIB, "resident"),
    ],
)
def test_the_reading_that_fits_is_named(read: int, fits: str | None, tmp_path: Path) -> None:
    """N = 128K: 64 MiB of K and V once and 32 of Q; 8 waves, 512 MiB; or every CTA for itself, 64 GiB."""
    found = _found(tmp_path, read, *LONG_QUESTION)
    assert found["fits"] == fits
    assert found["readings"]["at this L2"]["read"] == 544 * MIB


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (10 * MIB, "less than must be touched once"),
        (70_000 * MIB * 2, "more than every SM-side read"),
        (96 * MIB, "the reading that fits is: resident"),
        (4000 * MIB, "CTAs drift apart"),
        (300 * MIB, "the cache is no LRU"),
        (544 * MIB, ""),
    ],
)
def test_each_gap_has_its_assumption(read: int, says: str, tmp_path: Path) -> None:
    """And what agrees has none."""
    explained = _found(tmp_path, read, *LONG_QUESTION)["counters"]["dram read"]["explanation"]
    assert says in explained
    assert bool(says) == bool(explained)


def test_the_text_shows_residuals_and_readings(tmp_path: Path) -> None:
    """One launch each, with a machine and without one."""
    path = written(tmp_path, WIDE)
    shown = confront(path, "N=8192", "d=128", "--on", "h100-sxm").out
    for words in (
        "flash_fwd, mean of 2 launches",
        "fits: resident",
        "the last ones may still sit",
        "at this L2",
    ):
        assert words in shown
    assert "fits: resident" in confront(path, "N=8192", "d=128").out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("Kernel Name,dram__bytes_read.sum\n", "no row"),
        ("Kernel Name,dram__bytes_read.sum\nf,nan\n", "is nan: a measurement is a finite number"),
        ("Kernel Name,dram__bytes_read.sum\nf,inf\n", "finite number"),
        ("Kernel Name,dram__bytes_read.sum\nf,-5\n", "which no counter can be"),
        ("Kernel Name,lts__t_sector_hit_rate.pct\nf,140\n", "which no counter can be"),
        ("Kernel Name,dram__bytes_read.sum\nf,many\n", "is many, no number"),
        ("Kernel Name,dram__bytes_read.sum\nf\n", "1 cells under 2 heads"),
        ("Kernel Name,dram__bytes_read.sum [furlong]\nf,3\n", "the unit furlong is not known"),
        ("Kernel Name,sm__cycles.sum\nf,3\n", "has no counter that is known"),
        ("Kernel Name,dram__bytes_read.sum,dram__bytes_write.sum\nf,0,0\ng,0,0\n", "every counter is 0"),
        ("Kernel Name,dram__bytes_read.sum\nf,7\ng,7\nh,7\n", "every counter is 7"),
        ('Kernel Name,dram__bytes_read.sum\n,byte\n', "no row"),
        ('Kernel Name,dram__bytes_read.sum\n"f,3\n', "is no CSV"),
        ("Kernel Name,dram__bytes_read.sum\nf,__import__('os').getpid()\n", "no number"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_in_one_sentence(text: str, says: str, tmp_path: Path) -> None:
    """Exit code 2, one line, what is wrong and where."""
    answer = confront(written(tmp_path, text), "N=64", "d=8")
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_other_refusals_say_the_way_out(tmp_path: Path) -> None:
    """No file, no text, too large a one, no such kernel, and sizes left open."""
    assert "cannot be read" in confront(tmp_path / "none.csv", "N=64", "d=8").err
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xff\xfe\x00")
    assert "is no UTF-8 text" in confront(path, "N=64", "d=8").err
    path.write_bytes(b"a" * (16 * MIB + 1))
    assert "at most 16777216 (16 MiB) are read" in confront(path, "N=64", "d=8").err
    good = written(tmp_path, BARE)
    assert "has no_such in its name; it has flash_fwd" in confront(good, "N=64", "d=8", "--kernel", "no_such").err
    assert "give every one, such as N=8192 d=128" in confront(good).err

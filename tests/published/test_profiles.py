"""Public reports of misread profiles, by their number in the project's collection: what `derive confront` makes of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from outputs.confront.bandwidth import bandwidths
from outputs.confront.profile_csv import Profile
from outputs.confront.readings import Confrontation, read_in_lines
from outputs.confront.replays import mixed_replays
from tests.outputs.command import derive
from tests.published.questions import KiB, MiB, ask, total

DRAM, SECONDS, HITS = "dram__bytes_read.sum", "gpu__time_duration.sum", "lts__t_sector_hit_rate.pct"


def confront(path: Path, words: str, on: str, **counters: float) -> dict[str, Any]:
    """What ``derive confront`` says of a profile of one kernel, flash2."""
    file = path / "profile.csv"
    file.write_text(f"Kernel Name,{','.join(counters)}\nf,{','.join(map(str, counters.values()))}\n", encoding="utf-8")
    name, *sizes = words.split()
    answer = derive("confront", name, "--data", str(file), "--schedule", "flash2", *sizes, "--on", on, "--json")
    assert answer.code == 0, answer.err
    found: dict[str, Any] = answer.json["schedules"]["flash2"]
    return found


# --- 62: https://github.com/NVIDIA/TileGym/pull/118 , https://github.com/triton-lang/triton/pull/3943 -----------------------


@pytest.mark.parametrize(
    ("width", "mebibytes", "inflated", "says"),
    [(4096, 64, 1.6, "finds all of it"), (8192, 128, 1.06, "finds part of it"), (16384, 256, 0.99, "")],
)
def test_case_62_a_warm_cache_reads_above_the_peak(
    width: int, mebibytes: int, inflated: float, says: str, tmp_path: Path
) -> None:
    """2 x 4096 x N x 2 B in an L2 of 126.5 MiB: 1.6 times too fast at 4096, 1.06 at 8192, none at 16384.

    K and V of 4096 keys, N elements wide over all heads, are such a working set.
    """
    heads, peak = width // 128, 8e12
    words = f"decode Nk=4096 d=128 h={heads} hk={heads}"
    found = ask(words, on="b200")
    rows = 2 * heads * 128 * 2  # Q and O
    assert total(found, found.compulsory) - rows == mebibytes * MiB
    rate = ask(words, on="b200").rate("dram")
    assert rate is not None
    peak = float(rate.value)
    nanoseconds = round(total(found, found.compulsory) / (inflated * peak) * 1e9, 3)
    said = confront(tmp_path, words, "b200", **{SECONDS: nanoseconds, DRAM: 1000})["bandwidth"]
    assert said["benchmark"]["rate"] == pytest.approx(inflated * peak, rel=1e-6)
    assert said["modelled"]["rate"] <= peak * (1 + 1e-12)
    assert says in said["benchmark"]["explanation"]
    assert ("warm cache" in said["benchmark"]["explanation"]) == bool(says)


def test_case_62_a_decode_step_repeated_warm_measures_the_l2() -> None:
    """4 MiB of K and V: DRAM moves nothing on a repeat, and what a benchmark reads is the L2's 12 TB/s."""
    found = ask("decode Nk=8192 d=128 Br=1")
    warm = {b.what.partition(",")[0]: b for b in bandwidths(found, Profile(("f",), 1, {"seconds": Fraction(1, 10**6)}))}
    assert total(found, found.compulsory) == 4 * MiB + 512
    assert float(warm["warm repeat"].rate) == pytest.approx(12e12, rel=1e-3)
    assert "warm cache" in warm["benchmark: bytes touched / measured time"].says


def test_case_62_far_beyond_the_cache_nothing_is_warm() -> None:
    """1 GiB against 50 MiB: above the peak means that something else was measured, and no repeat is modelled."""
    found = ask("decode Nk=2M d=128")
    said = bandwidths(found, Profile(("f",), 1, {"seconds": Fraction(1, 10**6)}))
    assert "other sizes were measured" in said[0].says
    assert not [b for b in said if b.what.startswith("warm")]


# --- 63: https://forums.developer.nvidia.com/t/weird-number-for-l2-cache-hitrate/120341/2 -----------------------------------


@pytest.mark.parametrize(("head", "microseconds", "warned"), [(128, 34.7, False), (64, 17.4, True)])
def test_case_63_counters_of_short_kernels_do_not_belong_together(
    head: int, microseconds: float, warned: bool, tmp_path: Path
) -> None:
    """N = 8192, one head: 34.7 us at d = 128, 17.4 at d = 64, below the 20 us that replays need; measured or modelled."""
    words = f"mha N=8192 d={head}"
    found = ask(words)
    assert (found.seconds or 0) * 1e6 == pytest.approx(microseconds, abs=0.05)
    said = confront(tmp_path, words, "h100-sxm", **{SECONDS: microseconds * 1000, DRAM: 6 * MiB, HITS: 90})["warning"]
    assert bool(said) == warned
    assert ("compare DRAM bytes, not hit rates" in said) == warned
    unmeasured = Confrontation(found, Profile(("f",), 1, {"dram read": Fraction(6 * MiB)}))
    assert bool(mixed_replays(unmeasured)) == warned


def test_case_63_the_shortest_kernel_decides(tmp_path: Path) -> None:
    """Two kernels of 30 and 5 us are 35 us together, and the second one is too short."""
    file = tmp_path / "profile.csv"
    file.write_text(f"Kernel Name,{SECONDS},{DRAM}\na,30000,4000000\nb,5000,2000000\n", encoding="utf-8")
    answer = derive(
        "confront", "mha", "--data", str(file), "--schedule", "flash2", "N=8192", "d=128", "--on", "h100-sxm"
    )
    assert "a kernel took 5 us, below 20 us" in answer.out


def test_case_63_a_hit_rate_above_one_is_refused_with_its_cause(tmp_path: Path) -> None:
    """140 % of hits: hits and requests come from different replays."""
    file = tmp_path / "profile.csv"
    file.write_text(f"Kernel Name,{HITS}\nf,140\n", encoding="utf-8")
    answer = derive("confront", "mha", "--data", str(file), "N=64", "d=8")
    assert answer.code == 2
    assert "different replays of the kernel; leave that column out, and compare DRAM bytes" in answer.err


# --- 64: https://github.com/ROCm/hip-ep/pull/675 ----------------------------------------------------------------------------


def test_case_64_loads_of_half_a_line_double_the_dram_bytes(tmp_path: Path) -> None:
    """67.1 MB needed, 136.6 MB measured: 64 B of each line of 128 B were used, 2.04 times."""
    words = "decode Nk=4096 d=128 h=32 hk=32"
    assert total(ask(words), ask(words).compulsory) == pytest.approx(67.1e6, rel=1e-3)
    for machine in ("mi300x", "h100-sxm"):
        found = confront(tmp_path, words, machine, **{DRAM: 136.6e6})
        assert found["fits"] == "half lines"
        counter = found["counters"]["dram read"]
        assert counter["ratio"] == pytest.approx(2.04, abs=0.01)
        assert "half of a line of 128 B" in counter["explanation"]


@pytest.mark.parametrize(
    ("head", "dtype", "times"),
    [(64, "fp16", 1), (32, "fp16", 2), (64, "fp8", 2), (96, "fp16", Fraction(4, 3)), (128, "fp16", 1), (16, "fp8", 8)],
)
def test_case_64_bytes_are_lines_touched_times_their_size(head: int, dtype: str, times: Fraction) -> None:
    """A row of d = 64 in fp16 is one line of 128 B; one of 64 B is half of one and counts as a whole."""
    found = ask(f"mha N=1024 d={head} dtype={dtype}", on="h100-sxm")
    needed = found.exact(found.dram.read.amount)
    assert needed == 3 * KiB * head * (1 if dtype == "fp8" else 2)
    assert read_in_lines(found, 128) == times * needed


def test_case_64_short_rows_are_a_reading_of_their_own(tmp_path: Path) -> None:
    """Rows of 64 B, measured twice: the lines explain it; rows of 128 B have no such reading."""
    short = confront(tmp_path, "mha N=8192 d=32", "h100-sxm", **{DRAM: 3 * MiB})
    assert (short["fits"], short["readings"]["whole lines"]["read"]) == ("whole lines", 3 * MiB)
    assert "lines touched x 128 B" in short["counters"]["dram read"]["explanation"]
    assert "whole lines" not in confront(tmp_path, "mha N=8192 d=64", "h100-sxm", **{DRAM: 3 * MiB})["readings"]

"""Strategies, laws, tables and the pytest plugin, used as a user's tests would."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import BadValueError, DeriveError, UnknownNameError
from derive.graph import Graph
from derive.masks import Pattern
from hardware.machine import Machine
from outputs.testing import (
    Disagreement,
    agree,
    agree_table,
    closed_form,
    dtypes,
    exponents,
    graphs,
    heads,
    law_of,
    machines,
    masks,
    obey,
    read_counters,
    read_table,
    schedules,
    shapes,
    tiles,
    variants,
)
from rules.derivations import plan


@settings(max_examples=30)
@given(data=st.data(), sizes=shapes("N", "h", "hk", "left", N=9), grouped=heads(12))
def test_strategies_draw_what_the_engine_accepts(
    data: st.DataObject, sizes: dict[str, int], grouped: dict[str, int]
) -> None:
    """Hk divides h, sizes stay in their range, a schedule drawn for a variant and mask applies to it."""
    assert 1 <= sizes["N"] <= 9
    assert sizes["h"] % sizes["hk"] == grouped["h"] % grouped["hk"] == 0
    assert grouped["h"] <= 12
    assert isinstance(data.draw(masks()), Pattern)
    assert data.draw(dtypes("bf16", "fp8")).width in (1, 2)
    assert plan(data.draw(schedules("gqa", "causal"))).derive(variant("gqa").graph("causal"))


@settings(max_examples=20)
@given(data=st.data(), tile=tiles(multiple=16, most=64), deep=tiles("Bd", most=3), graph=graphs("gqa"))
def test_tiles_and_graphs_are_drawn(
    data: st.DataObject, tile: dict[str, int], deep: dict[str, int], graph: Graph
) -> None:
    """Multiples up to a largest; a graph of one variant or of any, under a mask that it takes."""
    assert set(tile) == {"Br", "Bc"}
    assert all(size in (16, 32, 48, 64) for size in tile.values())
    assert 1 <= deep["Bd"] <= 3
    assert {t.name for t in graph.inputs} == {"Q", "K", "V"}
    assert data.draw(graphs()).einsums


def test_a_mask_that_is_drawn_is_that_of_a_closed_form() -> None:
    """As it is drawn, or by its name."""
    form = closed_form("mha", "flash2", "flops")
    assert form.masked(Pattern("causal"))(N=3, d=1) == form.masked("causal")(N=3, d=1) == 4 * 6


@settings(max_examples=5)
@given(machine=machines(), name=variants(lambda name: name.endswith("backward")))
def test_machines_and_variants_are_those_of_the_catalogue(machine: Machine, name: str) -> None:
    """Loaded, and filtered by name."""
    assert machine.constants
    assert variant(name).direction == "backward"


SM = closed_form("mha", "flash2", "sm")


def sm_bytes(N: int, d: int, Br: int) -> int:
    """SM-side bytes of flash2."""
    return 4 * N * d * (1 + -(-N // Br))


def test_a_table_may_have_columns_that_are_no_sizes(tmp_path: Path) -> None:
    """Named sizes are read, and the column; text beside them is left alone; a name that is no column is refused."""
    path = tmp_path / "runs.csv"
    path.write_text(f"kernel,N,d,Br,bytes\nattend<2, 3>,64,8,16,{sm_bytes(64, 8, 16)}\n".replace("<2, 3>", ""))
    assert agree_table(path, SM, column="bytes", sizes=("N", "d", "Br")).tried == 1
    with pytest.raises(BadValueError, match="kernel is attend, no number"):
        agree_table(path, SM, column="bytes")
    with pytest.raises(BadValueError, match="has no column time; it has kernel, N, d, Br, bytes"):
        agree_table(path, SM, column="time", sizes=("N",))
    with pytest.raises(BadValueError, match="needs rows, each with the measured column Br"):
        agree_table([{"N": 1, "bytes": 2}], SM, column="bytes", sizes=("N", "Br"))


def test_a_profile_is_a_row_of_a_table(tmp_path: Path) -> None:
    """Bytes and seconds by counter, of the kernel that is named; whichever package is imported first."""
    path = tmp_path / "ncu.csv"
    path.write_text("Kernel Name,dram__bytes_read.sum [Kbyte]\nattend,7\nfill,9\n", encoding="utf-8")
    assert read_counters(path, "attend") == {"dram read": 7000}
    assert read_counters(str(path)) == {"dram read": 16000}
    for first in ("outputs.confront.profile_csv", "outputs.testing"):
        program = f"import {first}; from outputs.testing import read_counters; print(read_counters({str(path)!r}))"
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
        assert "16000" in ran.stdout, ran.stderr


def test_an_agreement_says_how_many_points_there_were() -> None:
    """One, or several."""
    one = {"N": 64, "d": 8, "Br": 16, "bytes": sm_bytes(64, 8, 16)}
    assert agree_table([one], SM, column="bytes").says == "agrees at 1 point"
    assert agree_table([one, one], SM, column="bytes").says == "agrees at 2 points"


def test_a_constant_column_is_refused_with_the_reason() -> None:
    """Sizes differ and the counter does not: nothing was measured. One row, or sizes that are all one, may be constant."""
    rows = [{"N": n, "d": 8, "Br": 16, "bytes": 1000} for n in (64, 128)]
    with pytest.raises(BadValueError, match="bytes is 1000 in all 2 rows, whose sizes differ: nothing was measured"):
        agree_table(rows, SM, column="bytes")
    with pytest.raises(Disagreement, match="measured 1000"):
        agree_table([rows[0]] * 3, SM, column="bytes")
    with pytest.raises(BadValueError, match="needs rows, each with the measured column bytes"):
        agree_table([], SM, column="bytes")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"measured": lambda N, d: N * d}, "is called with N, d, Br and takes N, d; draw what it takes"),
        ({"measured": lambda: 1}, "takes nothing"),
        ({"measured": lambda **_: None}, "at N=1, d=1, Br=1 is None, a NoneType, and a count is a number"),
        ({"measured": lambda **_: "8"}, "is 8, a str, and a count is a number"),
        ({"measured": lambda **_: True}, "is True, a bool, and a count is a number"),
        ({"measured": lambda **_: 1j}, "a complex, and a count is a number"),
        ({"measured": lambda **_: float("inf")}, "is inf, and a count is a finite number"),
        ({"over": {"N": 1}}, "is no Hypothesis strategy; write over="),
        ({"over": st.integers()}, "over= draws 0, which is no sizes by key"),
        ({"examples": 0}, "examples=0: at least one point is compared"),
        ({"tolerance": -1}, "tolerance=-1: a relative difference is 0 or more and finite"),
        ({"tolerance": float("nan")}, "tolerance=nan"),
        ({"tolerance": float("inf")}, "tolerance=inf"),
        ({"expected": closed_form("mha", "flash2", "dram")}, "needs ctas and L2, of no value yet: draw it too"),
    ],
)  # fmt: skip
def test_a_comparison_that_cannot_be_made_is_refused_in_a_sentence(words: dict[str, Any], says: str) -> None:
    """What was given, and what would be right; never an error of somebody's library."""
    asked: dict[str, Any] = {"measured": sm_bytes, "expected": SM, "over": shapes("N", "d", "Br"), **words}
    with pytest.raises(DeriveError, match=says):
        agree(asked.pop("measured"), asked.pop("expected"), **asked)


@pytest.mark.parametrize("number", [8, 8.0, Fraction(8), Decimal(8), np.int64(8), np.float32(8), np.uint8(8)])
def test_every_kind_of_number_is_a_count(number: Any) -> None:
    """NumPy's too."""
    assert agree(lambda **_: number, SM, over=st.just({"N": 1, "d": 1, "Br": 1})).tried == 1


def test_what_changes_from_call_to_call_is_told() -> None:
    """A simulator with a clock: the first hundred calls are a byte off, or one in twenty; none ends in somebody's error."""
    calls: list[int] = []

    def first_ones(N: int, d: int, Br: int) -> int:
        calls.append(N)
        return sm_bytes(N, d, Br) + (len(calls) <= 100)

    with pytest.raises(Disagreement, match="measured again there it is 8: it changes from call to call") as caught:
        agree(first_ones, SM, over=shapes("N", "d", "Br"))
    assert caught.value.wrong == 100

    chance = Random(0)

    def now_and_then(N: int, d: int, Br: int) -> int:
        return sm_bytes(N, d, Br) + (chance.random() < 0.05)

    with pytest.raises(Disagreement):
        agree(now_and_then, SM, over=shapes("N", "d", "Br"))
    calls.clear()
    with pytest.raises(Disagreement, match="factor as d is multiplied by 2"):
        obey(first_ones, law_of(SM, "d"), over=shapes("N", "d", "Br"))


def test_keys_and_ranges_that_cannot_be_drawn_are_refused() -> None:
    """A misspelt key when it is written, not when a test fails."""
    with pytest.raises(UnknownNameError, match="there is no size 'n'"):
        shapes("n", "d")
    with pytest.raises(BadValueError, match="N=0: the largest value of a size is at least 1"):
        shapes("N", N=0)
    with pytest.raises(BadValueError, match="a tile has at least one row, and at most 64"):
        tiles(multiple=128, most=64)


def test_powers_are_measured_with_an_interval() -> None:
    """Exact powers have no width; a lower term widens it; too few points give none."""
    sizes = [{"N": n, "d": k} for n in (8, 16, 64) for k in (2, 4, 16)]
    exact = exponents(sizes, [s["N"] ** 2 * s["d"] for s in sizes])
    assert (round(exact["N"].power, 6), round(exact["d"].power, 6)) == (2, 1)
    assert exact["N"].half < 1e-6
    mixed = exponents(sizes, [s["N"] ** 2 + 40 * s["N"] for s in sizes])
    assert 1 < mixed["N"].power < 2
    assert mixed["N"].half > 0.01
    assert exponents(sizes[:1], [1]) == {}


def test_names_that_do_not_exist_are_refused_with_the_nearest() -> None:
    """Quantities, and sizes of a call."""
    with pytest.raises(UnknownNameError, match="did you mean dram"):
        closed_form("mha", "flash2", "drum")
    with pytest.raises(UnknownNameError, match="there is no size 'Bt'"):
        closed_form("mha", "flash2", "sm")(N=8, d=2, Bt=4)
    with pytest.raises(BadValueError, match="a count is a finite number"):
        agree(lambda **_: float("nan"), closed_form("mha"), over=shapes("N", "d"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("N,bytes\n", "no row"),
        ("N,bytes\n1,nan\n", "finite number"),
        ("N,bytes\n1,2,3\n", "3 cells under 2 heads"),
        ("N,N\n1,2\n", "a column head twice"),
        ("N,bytes\n1,__import__('os')\n", "no number"),
        ('N,bytes\n1,"2\n', "is no CSV"),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(text: str, says: str, tmp_path: Path) -> None:
    """The row and column at fault are named."""
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadValueError, match=says):
        read_table(path)


def run_with_the_plugin(folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests in *folder*, run by a pytest of their own."""
    # -p twice the same name is one plugin: an installed entry point has loaded it already under another
    program = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    words = ["-p", "no:attn_derive", "-p", "outputs.pytest_plugin", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_failing_user_test_reads_as_its_diagnosis(tmp_path: Path) -> None:
    """With the plugin, the report is the smallest case and the slip; no line of the search's own code stands in it."""
    (tmp_path / "test_mine.py").write_text(
        "from outputs.testing import shapes\n"
        "def test_bytes(derived, agrees):\n"
        "    wrong = lambda N, d, Br: 2 * N * d * 2 + N * d * 2 * -(-N // Br)\n"
        "    agrees(wrong, derived('mha', 'flash2', 'sm'), over=shapes('N', 'd', 'Br', N=99, d=8, Br=9))\n",
        encoding="utf-8",
    )
    ran = run_with_the_plugin(tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "test_mine.py:4: SM-side bytes of mha, flash2, mask full: measured" in ran.stdout
    assert "diagnosis: K is forgotten" in ran.stdout
    assert "diagnosis: V is forgotten" in ran.stdout
    assert "measuring" not in ran.stdout


def test_a_refusal_reads_as_its_sentence_and_a_mistake_in_the_tested_code_as_its_own(tmp_path: Path) -> None:
    """A comparison that cannot be made is a line; what the tested code raises keeps the traceback that leads to it."""
    (tmp_path / "test_mine.py").write_text(
        "from outputs.testing import shapes\n"
        "def test_refused(derived, agrees):\n"
        "    agrees(lambda N: N, derived('mha'), over=shapes('N', 'd'))\n"
        "def test_mistaken(derived, agrees):\n"
        "    def mine(N, d):\n"
        "        return [0][N]\n"
        "    agrees(mine, derived('mha'), over=shapes('N', 'd'))\n",
        encoding="utf-8",
    )
    ran = run_with_the_plugin(tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "test_mine.py:3: what is measured is called with N, d and takes N; draw what it takes" in ran.stdout
    assert "return [0][N]" in ran.stdout
    assert "IndexError" in ran.stdout

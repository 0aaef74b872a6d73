"""Strategies, laws, tables and the pytest plugin, used as a user's tests would."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import BadValueError, UnknownNameError
from derive.laws import Evidence, Law, Regime, proved
from derive.masks import Pattern
from derive.symbols import B_r, N, b, d
from hardware.machine import Machine
from outputs.testing import (
    agree,
    closed_form,
    dtypes,
    exponents,
    heads,
    machines,
    masks,
    obey,
    read_table,
    schedules,
    shapes,
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


@settings(max_examples=5)
@given(machine=machines(), name=variants(lambda name: name.endswith("backward")))
def test_machines_and_variants_are_those_of_the_catalogue(machine: Machine, name: str) -> None:
    """Loaded, and filtered by name."""
    assert machine.constants
    assert variant(name).direction == "backward"


def rereads(N: int, d: int, B_r: int, b: int) -> int:
    """Bytes of K and V that flash2 brings in."""
    return 2 * N * d * b * -(-N // B_r)


HALVES = proved(2 * N**2 * d * b / B_r, B_r)


def test_a_law_is_tested_inside_its_regime_and_says_when_that_is_nowhere() -> None:
    """Where the tile divides, doubling it halves; where it never does, nothing was tested, and nothing failed."""
    assert HALVES is not None
    law = Law(HALVES.amount, B_r, HALVES.exponents, Regime((N / B_r,)), Evidence.PROVED, HALVES.coefficients)
    over = st.fixed_dictionaries(
        {"N": st.sampled_from((64, 96)), "d": st.integers(1, 9), "B_r": st.sampled_from((8, 16, 48)), "b": st.just(2)}
    )
    found = obey(rereads, law, over=over)
    assert 0 < found.outside < found.tried
    odd = st.fixed_dictionaries({"N": st.just(97), "d": st.just(2), "B_r": st.integers(2, 40), "b": st.just(2)})
    assert obey(rereads, law, over=odd).says.startswith("outside the law's regime at all")
    with pytest.raises(AssertionError, match="factor as B_r is multiplied by 2"):
        obey(lambda **s: rereads(**{**s, "B_r": 8}), law, over=over)


def test_a_law_without_a_factor_is_refused() -> None:
    """A class leaves its constant open."""
    law = Law(N**2, N, (Fraction(2),), Regime(), Evidence.PROVED, exact=False)
    with pytest.raises(BadValueError, match="leaves the factor open"):
        obey(lambda N: N, law, over=shapes("N"))


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


def test_a_failing_user_test_reads_as_its_diagnosis(tmp_path: Path) -> None:
    """With the plugin, the report is the smallest case and the slip; no line of the search's own code stands in it."""
    (tmp_path / "test_mine.py").write_text(
        "from outputs.testing import shapes\n"
        "def test_bytes(derived, agrees):\n"
        "    wrong = lambda N, d, Br: 2 * N * d * 2 + N * d * 2 * -(-N // Br)\n"
        "    agrees(wrong, derived('mha', 'flash2', 'sm'), over=shapes('N', 'd', 'Br', N=99, d=8, Br=9))\n",
        encoding="utf-8",
    )
    # -p twice the same name is one plugin: an installed entry point has loaded it already under another
    program = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    words = ["-p", "no:attn_derive", "-p", "outputs.pytest_plugin", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 1, ran.stderr
    assert "test_mine.py:4: sm of mha, flash2, mask full: measured" in ran.stdout
    assert "diagnosis: K is forgotten" in ran.stdout
    assert "diagnosis: V is forgotten" in ran.stdout
    assert "_search" not in ran.stdout

"""Exactness of units."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware.constant import Constant, Reading, constant
from hardware.units import RANGES, UNITS, base_units, printed_units

printed = st.decimals(min_value=Decimal("0.000001"), max_value=Decimal(10**9), places=6)


@given(value=printed, unit=st.sampled_from(sorted(UNITS)))
def test_a_unit_scales_exactly_and_back(value: Decimal, unit: str) -> None:
    """A printed number times its unit's worth, divided by it again, is the printed number, digit for digit."""
    table = {"value": 1, "unit": "SMs", "kind": "derived", "source": "s", "date": date(2026, 11, 28)}
    loaded = constant("toy", table | {"readings": [{"value": value, "unit": unit, "source": "s"}]}, "toy.toml")
    assert isinstance(loaded, Constant)
    reading: Reading = loaded.readings[0]
    worth, base = UNITS[unit]
    assert reading.value is not None
    assert reading.value / worth == Fraction(value)
    assert reading.unit == base


@given(st.integers(min_value=1, max_value=1000))
def test_prefixes_are_a_thousand_or_1024_apart(n: int) -> None:
    """Decimal prefixes and binary ones never stand for each other."""
    worth = {unit: n * factor for unit, (factor, _) in UNITS.items()}
    assert worth["TB/s"] == 1000 * worth["GB/s"] == n * 10**12
    assert worth["MB"] == 1000 * worth["kB"] == n * 10**6
    assert worth["GiB"] == 1024 * worth["MiB"] == 1024**2 * worth["KiB"] == n * 2**30
    assert worth["PFLOP/s"] == 1000 * worth["TFLOP/s"]
    assert worth["GHz"] == 1000 * worth["MHz"]


def test_fifty_mebibytes_are_not_fifty_megabytes() -> None:
    """The trap of every cache label: 4.9% here."""
    assert 50 * UNITS["MiB"][0] == 52_428_800
    assert 50 * UNITS["MB"][0] == 50_000_000


def test_every_base_unit_has_its_range() -> None:
    """A unit that could be given any number would guard nothing."""
    assert {base for _, base in UNITS.values()} == set(RANGES)
    assert all(0 < low < high for low, high in RANGES.values())


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("dram_bandwidth", ("GB/s", "TB/s")),
        ("measured_l2_bandwidth", ("GB/s", "TB/s")),
        ("tensor_peak_clock", ("MHz", "GHz")),
        ("peak_int8", ("TOP/s", "POP/s")),
        ("peak_fp8", ("GFLOP/s", "TFLOP/s", "PFLOP/s")),
        ("smem_bandwidth", ("B/clk/SM", "B/clk/CU")),
    ],
)
def test_a_constant_is_given_in_units_that_measure_it(name: str, units: tuple[str, ...]) -> None:
    """The name of a constant decides what may measure it."""
    assert printed_units(base_units(name)) == units

"""What must hold of every machine file, and the numbers that others rely on."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest

from hardware import Machine, load, names
from hardware.constant import KINDS
from hardware.machine import DATA
from hardware.roofline import ridge
from hardware.units import RANGES

MACHINES = [load(name) for name in names()]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=[machine.id for machine in MACHINES])


def test_there_are_thirty_six_machines() -> None:
    """No file was lost, and each loads."""
    assert len(MACHINES) == 36


@every_machine
def test_every_constant_says_what_it_is(machine: Machine) -> None:
    """Unit, kind, source and date are there for each, and every absence has its reason."""
    for constant in machine.constants.values():
        assert constant.unit in RANGES, constant.name
        assert constant.kind in KINDS, constant.name
        assert constant.source.strip(), constant.name
        assert date(2026, 1, 1) < constant.date, constant.name
        assert constant.value > 0, constant.name
        assert type(constant.value) is Fraction, constant.name
    for absent in machine.absent.values():
        assert absent.reason.strip(), absent.name


@every_machine
def test_a_machine_is_called_as_its_file(machine: Machine) -> None:
    """The id inside a file is the file's name, so that one file answers one name."""
    assert (DATA / f"{machine.id}.toml").exists()


@every_machine
def test_what_a_roofline_needs_is_stated(machine: Machine) -> None:
    """Each machine has a DRAM bandwidth, a 16-bit peak, and speaks of each thing it may lack."""
    assert machine["dram_bandwidth"].unit == "B/s"
    assert {"bf16", "fp16"} & set(machine.dtypes)
    for name in ("sm_count", "boost_clock", "l2_size", "l2_count", "shared_mem_per_block_max", "peak_fp8", "peak_fp4"):
        assert name in machine.constants or name in machine.absent, name
    assert {"l2_effective", "measured_l2_full_speed_capacity"} & {*machine.constants, *machine.absent}


@every_machine
def test_the_stated_ridge_is_the_computed_one(machine: Machine) -> None:
    """``ridge_16bit``, computed by hand when the file was written, agrees to its last digit: no unit slipped since."""
    dtype = "bf16" if "bf16" in machine.dtypes else "fp16"
    assert abs(ridge(machine, dtype) - machine["ridge_16bit"].value) <= Fraction(1, 20)


@every_machine
def test_effective_l2_never_exceeds_nominal(machine: Machine) -> None:
    """What keeps full speed is part of the cache."""
    if (machine.get("l2_effective") or machine.get("measured_l2_full_speed_capacity")) is not None:
        assert machine.l2("effective").value <= machine.l2("nominal").value


def test_no_two_machines_share_a_name() -> None:
    """An alias that meant two machines would answer at random."""
    called = [name.lower() for machine in MACHINES for name in {machine.id, *machine.aliases}]
    assert len(called) == len(set(called))


def test_h100_sxm_has_its_known_constants() -> None:
    """The reference machine, to the last byte."""
    h100 = load("h100-sxm")
    assert h100["sm_count"].value == 132
    assert h100.peak("bf16").value == Fraction(9894, 10) * 10**12
    assert h100["dram_bandwidth"].value == Fraction(335, 100) * 10**12
    assert h100["dram_bandwidth"].as_printed == "3.35 TB/s"
    assert h100["dram_bandwidth"].kind == "datasheet peak"
    assert h100.l2().value == 52_428_800
    assert h100["shared_mem_per_block_max"].value == 232_448
    assert h100["shared_mem_per_sm_max"].value == 233_472
    assert h100.matmul_clock.value == 1_830_000_000
    assert h100["l2_bandwidth"].value == 12 * 10**12
    assert h100["l2_bandwidth"].kind == "paper"
    assert h100.l2_count == 1


def test_effective_l2_is_the_measured_or_the_sibling_s() -> None:
    """H100 PCIe and H200 were swept; H100 SXM and GH200 take the share of their sibling and say it is derived."""
    assert load("h100-pcie").l2("effective").kind == "measured"
    for name, mebibytes in {"h100-pcie": 36, "h100-sxm": 36, "h200-sxm": 39.5, "gh200-96gb": 39.5}.items():
        assert load(name).l2("effective").value == Fraction(mebibytes) * 2**20
    assert load("h100-sxm").l2("effective").kind == "derived"
    assert "H100 PCIe" in load("h100-sxm").l2("effective").source


def test_cache_labels_are_binary_and_bandwidth_is_decimal() -> None:
    """Vendors print MB for a cache of as many MiB, and TB/s for 10^12 B/s."""
    sizes = {"a100-sxm-40gb": 41_943_040, "l40s": 100_663_296, "h200-sxm": 62_914_560, "b200-sxm": 132_644_864}
    for name, size in sizes.items():
        assert load(name).l2().value == size
    assert load("h200-sxm")["dram_bandwidth"].value == 4_800_000_000_000


def test_an_instinct_has_eight_private_l2s() -> None:
    """The 32 MiB of an MI300X are eight times 4 MiB: no compute unit reaches more than one."""
    for name in ("mi300x", "mi325x", "mi355x"):
        assert load(name).l2_count == 8
        assert load(name).l2().value == 4 * 2**20


def test_b300_lost_its_integer_rate() -> None:
    """Blackwell Ultra runs int8 at 153.5 TOP/s, about a thirtieth of B200: the stale 4500 is a reading only."""
    int8 = load("b300-sxm").peak("int8")
    assert (int8.value, int8.unit) == (Fraction(1535, 10) * 10**12, "op/s")
    assert 4500 * 10**12 in [reading.value for reading in int8.readings]

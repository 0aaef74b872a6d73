"""Dense and sparse peaks, which vendors print in one table a factor of two apart."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hardware import Machine, load, names
from hardware.roofline import ridge

PRINTED_SPARSE: dict[tuple[str, str], int | Fraction] = {
    ("h100-sxm", "tf32"): 989,
    ("h100-sxm", "bf16"): 1979,
    ("h100-sxm", "fp8"): 3958,
    ("h100-pcie", "tf32"): 756,
    ("h100-pcie", "bf16"): 1513,
    ("h100-pcie", "fp8"): 3026,
    ("l4", "bf16"): 242,
    ("l4", "fp8"): 485,
    ("l40s", "tf32"): 366,
    ("l40s", "bf16"): 733,
    ("l40s", "fp8"): 1466,
    ("rtx-4090", "bf16"): 661,
    ("rtx-5090", "bf16"): 838,
    ("rtx-5090", "fp8"): Fraction("1676.8"),
    ("rtx-5090", "fp4"): 3352,
    ("rtx-pro-6000", "fp4"): 4000,
    ("b200-sxm", "fp4"): 18000,
    ("gb10", "fp4"): 1000,
    ("mi355x", "fp8"): 10100,
    ("trainium2", "fp8"): 2563,
}
"""TFLOP/s with two of four operands zero, as datasheets and the code that copied them have it."""


@pytest.mark.parametrize(("name", "dtype"), PRINTED_SPARSE)
def test_a_known_sparse_number_is_never_a_peak(name: str, dtype: str) -> None:
    """It stands among the readings, tagged, and the peak is at most some 60% of it."""
    printed = PRINTED_SPARSE[name, dtype] * 10**12
    peak = load(name).peak(dtype)
    assert [reading.sparsity for reading in peak.readings if reading.value == printed] == ["sparse"]
    assert peak.value < printed * Fraction(6, 10)


@pytest.mark.parametrize("machine", [load(name) for name in names()], ids=names())
def test_every_peak_is_tagged_dense(machine: Machine) -> None:
    """The tag is there because someone looked, and no reading tagged sparse equals the peak it stands under."""
    for name, constant in machine.constants.items():
        assert constant.sparsity == ("dense" if name.startswith("peak_") else ""), name
        assert constant.value not in {r.value for r in constant.readings if r.sparsity == "sparse"}, name


def test_the_h100_ridge_is_the_dense_one() -> None:
    """989.4 / 3.35 = 295.34 FLOP/B; the sparse peak would give 591."""
    assert ridge(load("h100-sxm"), "bf16") == Fraction("989.4") / Fraction("3.35")
    assert round(float(ridge(load("h100-sxm"), "bf16")), 2) == 295.34


def test_the_pcie_h100_is_not_the_sxm() -> None:
    """756 TFLOP/s over 2.0 TB/s, as printed, is 378 FLOP/B; over the 2.039 that devices report, 370.8."""
    pcie = load("h100-pcie")
    printed = next(reading for reading in pcie["dram_bandwidth"].readings if reading.text == "2.0 TB/s")
    assert printed.value is not None
    assert pcie.peak("bf16").value / printed.value == 378
    assert round(float(ridge(pcie, "bf16")), 1) == 370.8


def test_b300_fp4_is_not_half_its_sparse_number() -> None:
    """14 PFLOP/s dense against 18 sparse: the rule of two fails here, so it is nowhere in the code."""
    assert load("b300-sxm").peak("fp4").value == 14 * 10**15

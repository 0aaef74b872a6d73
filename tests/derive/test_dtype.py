"""Element types and their bytes, block scales included."""

from fractions import Fraction

import pytest

from derive.dtype import TYPES, dtype
from derive.errors import BadValueError, UnknownNameError


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("fp64", Fraction(8)),
        ("fp32", Fraction(4)),
        ("tf32", Fraction(4)),
        ("bf16", Fraction(2)),
        ("fp16", Fraction(2)),
        ("fp8", Fraction(1)),
        ("int8", Fraction(1)),
        ("mxfp8", Fraction(33, 32)),
        ("mxfp4", Fraction(17, 32)),
        ("nvfp4", Fraction(9, 16)),
        ("fp8-g128", Fraction(33, 32)),
        ("int4-g128", Fraction(33, 64)),
    ],
)
def test_a_width_is_exact_and_counts_the_scale(name: str, width: Fraction) -> None:
    """mxfp4: 4 bits and an eighth of a byte a block of 32; nvfp4: of 16."""
    assert dtype(name).width == width
    assert set(TYPES) >= {name}


def test_case_does_not_matter() -> None:
    """BF16 is bf16."""
    assert dtype("BF16") is dtype("bf16")


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    """A slip of a letter is corrected, a foreign word lists all."""
    with pytest.raises(UnknownNameError, match=r"there is no element type 'fb16'; did you mean"):
        dtype("fb16")
    with pytest.raises(UnknownNameError, match=r"known: fp64, fp32"):
        dtype("quaternion")


@pytest.mark.parametrize(("name", "ways_out"), [("fp4", "mxfp4 .* or nvfp4"), ("INT4", "int4-g128")])
def test_four_bits_without_a_scale_are_refused(name: str, ways_out: str) -> None:
    """Their range holds no tensor; the scale's bytes count, so which scale must be said."""
    with pytest.raises(BadValueError, match=f"is stored with a scale a block of elements.*: take {ways_out}"):
        dtype(name)


def test_a_scaled_type_multiplies_at_the_rate_of_its_elements() -> None:
    """A machine states the rate of fp4, whichever scale its blocks have."""
    assert [dtype(n).multiplies_as for n in ("mxfp4", "nvfp4", "mxfp8", "bf16")] == ["fp4", "fp4", "fp8", "bf16"]


def test_a_way_out_says_its_bits_an_element_in_all() -> None:
    """nvfp4: 4 bits and an 8-bit scale for 16 elements, 4.5; mxfp4: a scale for 32, 4.25."""
    with pytest.raises(BadValueError) as refused:
        dtype("fp4")
    assert "nvfp4 (a scale for 16 elements, 4.5 bits an element in all)" in str(refused.value)
    assert "mxfp4 (a scale for 32 elements, 4.25 bits an element in all)" in str(refused.value)

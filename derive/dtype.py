"""Element types: bits an element, and the scale that some formats share over a block."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from derive.errors import BadValueError, nearest


@dataclass(frozen=True, slots=True)
class DType:
    """An element type.

    Attributes:
        name: its usual name.
        bits: bits an element.
        scale_bits: bits of the scale that a block of elements shares; 0 without one.
        block: elements that share a scale.
        element: the type of its elements, by whose rate matrix units multiply; its own name without a scale.
    """

    name: str
    bits: int
    scale_bits: int = 0
    block: int = 1
    element: str = ""

    @property
    def multiplies_as(self) -> str:
        """The type whose rate a machine states for its products."""
        return self.element or self.name

    @property
    def width(self) -> Fraction:
        """Bytes an element, its share of the scale included."""
        return (self.bits + Fraction(self.scale_bits, self.block)) / 8


TYPES = {
    t.name: t
    for t in (
        DType("fp64", 64),
        DType("fp32", 32),
        DType("tf32", 32),
        DType("bf16", 16),
        DType("fp16", 16),
        DType("fp8", 8),
        DType("int8", 8),
        DType("mxfp8", 8, scale_bits=8, block=32, element="fp8"),
        DType("mxfp4", 4, scale_bits=8, block=32, element="fp4"),
        DType("nvfp4", 4, scale_bits=8, block=16, element="fp4"),
        DType("fp8-g128", 8, scale_bits=32, block=128, element="fp8"),
        DType("int4-g128", 4, scale_bits=16, block=128, element="int4"),
    )
}
"""Every element type by name. Scales as in the OCP MX specification 1.0 (mx*) and NVIDIA's NVFP4; int4-g128 has an fp16 scale
for a group of 128 (Lin et al. 2023, AWQ, arXiv:2306.00978, section 5), fp8-g128 an fp32 one (DeepSeek-AI 2024, DeepSeek-V3,
arXiv:2412.19437, section 3.3; the latent cache of FlashMLA)."""


def dtype(name: str) -> DType:
    """The type *name*.

    Raises:
        UnknownNameError: there is none; the nearest is suggested.
        BadValueError: it is only stored with a scale, and the name leaves open which.
    """
    low = name.lower()
    if scaled := [t for t in TYPES.values() if t.element == low and low not in TYPES]:
        words = (
            f"{t.name} (a scale for {t.block} elements, {float(8 * t.width):g} bits an element in all)" for t in scaled
        )
        raise BadValueError(
            f"{low} is stored with a scale a block of elements, whose bytes count: take {' or '.join(words)}"
        )
    if low not in TYPES:
        raise nearest("element type", name, TYPES)
    return TYPES[low]

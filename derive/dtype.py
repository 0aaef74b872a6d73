"""Element types: bits an element, and the scale that some formats share over a block."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from derive.errors import nearest


@dataclass(frozen=True, slots=True)
class DType:
    """An element type.

    Attributes:
        name: its usual name.
        bits: bits an element.
        scale_bits: bits of the scale that a block of elements shares; 0 without one.
        block: elements that share a scale.
    """

    name: str
    bits: int
    scale_bits: int = 0
    block: int = 1

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
        DType("mxfp8", 8, scale_bits=8, block=32),
        DType("fp4", 4),
        DType("mxfp4", 4, scale_bits=8, block=32),
        DType("nvfp4", 4, scale_bits=8, block=16),
    )
}
"""Every element type by name. Scales as in the OCP MX specification 1.0 (mx*) and NVIDIA's NVFP4."""


def dtype(name: str) -> DType:
    """The type *name*.

    Raises:
        UnknownNameError: there is none; the nearest is suggested.
    """
    if name.lower() not in TYPES:
        raise nearest("element type", name, TYPES)
    return TYPES[name.lower()]

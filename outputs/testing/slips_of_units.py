"""Slips of units: MB for MiB, elements for bytes, a multiply-add that is one FLOP, integers and floats that are too short."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from struct import pack, unpack

import sympy as sp

from derive.errors import DomainError
from derive.exact import Number, value
from derive.substitution import free, put
from outputs.testing.closed_form import WORK, ClosedForm
from outputs.testing.slip import Slip, amount_at, scaled

_UNITS = (("kB", "KiB", 1), ("MB", "MiB", 2), ("GB", "GiB", 3))
_WORK_UNITS = (("GFLOP", 9), ("TFLOP", 12))
_LARGEST_FLOAT = 2**128 - 2**104


def slips_of_units(form: ClosedForm) -> Iterator[Slip]:
    """Every one of *form*."""
    amount = form.amount
    if form.quantity in WORK:
        yield Slip("a multiply-add is counted as one FLOP, not two", scaled(amount, Fraction(1, 2)))
        for unit, power in _WORK_UNITS:
            yield Slip(f"{unit} are reported, not {form.unit}", scaled(amount, Fraction(1, 10**power)))
    else:
        yield from _of_bytes(form)
    yield Slip("all of it is counted twice", scaled(amount, Fraction(2)))
    yield Slip("a 32-bit signed integer overflows", lambda values: _signed(value(amount, values)))
    yield Slip("a 32-bit unsigned integer overflows", lambda values: value(amount, values) % 2**32)
    yield Slip("a 32-bit float keeps 24 bits of the count", lambda values: _float32(value(amount, values)))


def _of_bytes(form: ClosedForm) -> Iterator[Slip]:
    amount = form.amount
    widths = {s for s in free(amount) if s.name == "b" or s.name.startswith("b_")}
    elements = put(amount, dict.fromkeys(widths, sp.Integer(1)))
    yield Slip("elements are reported as bytes", amount_at(elements))
    for size in (2, 4, 8):
        wide = put(amount, dict.fromkeys(widths, sp.Integer(size)))
        yield Slip(f"every element is counted as {size} B wide", amount_at(wide))
    for decimal, binary, power in _UNITS:
        ratio = Fraction(2 ** (10 * power), 10 ** (3 * power))
        note = f"2^{10 * power}/10^{3 * power}"
        yield Slip(
            f"{binary} are read as {decimal}, or divided by one and multiplied by the other: x {note}",
            scaled(amount, ratio),
        )
        yield Slip(f"{decimal} are read as {binary}: measured is derived / ({note})", scaled(amount, 1 / ratio))
        yield Slip(f"{binary} are reported, not bytes", scaled(amount, Fraction(1, 2 ** (10 * power))))
        yield Slip(f"{decimal} are reported, not bytes", scaled(amount, Fraction(1, 10 ** (3 * power))))
    yield Slip("bits are reported, not bytes", scaled(amount, Fraction(8)))
    yield Slip(
        "a 32-bit signed integer overflows while it counts elements",
        lambda values: _signed(value(elements, values)) * _one_of({values[width.name] for width in widths}),
    )


def _one_of(widths: set[Number]) -> Number:
    """The one width that all tensors have.

    Raises:
        DomainError: they have several.
    """
    if len(widths) != 1:
        raise DomainError(
            f"elements become bytes by one factor only where all have one width; these are {sorted(widths)}"
        )
    return next(iter(widths))


def _signed(count: Number) -> Number:
    """What a 32-bit signed integer keeps of *count*."""
    return (count + 2**31) % 2**32 - 2**31


def _float32(count: Number) -> Number:
    """*count* to the nearest 32-bit float."""
    if not -_LARGEST_FLOAT <= count <= _LARGEST_FLOAT:
        return count
    kept: float = unpack("f", pack("f", float(count)))[0]
    return Fraction(kept)

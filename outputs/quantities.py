"""Numbers with their units: sizes binary, rates and times decimal, four significant digits beside the exact value."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

Number = int | Fraction | float
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_TIMES: tuple[tuple[str, int], ...] = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def grouped(number: Number) -> str:
    """A whole number with thousands separated, e.g. ``34,359,738,368``."""
    return f"{int(number):,}"


def significant(number: Number, digits: int = 4) -> str:
    """*number* to *digits* significant digits; a whole number below a million as it is, very large ones with an exponent."""
    if Fraction(number).denominator == 1 and -(10**6) < number < 10**6:
        return grouped(number)
    exact = Decimal(Fraction(number).numerator) / Decimal(Fraction(number).denominator)
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(exact)
    exponent = rounded.adjusted()
    if exponent >= 6 or exponent < -4:
        return f"{rounded:.{digits - 1}e}"
    return f"{rounded:.{max(0, digits - 1 - exponent)}f}"


def size(number: Number) -> str:
    """Bytes in binary units, e.g. ``260.0 MiB``."""
    step = 0
    scaled = Fraction(number)
    while scaled >= 1024 and step < len(_SIZES) - 1:
        scaled, step = scaled / 1024, step + 1
    return f"{significant(scaled)} {_SIZES[step]}" if step else f"{grouped(number)} B"


def decimal(number: Number, unit: str) -> str:
    """A count or a rate in decimal units, e.g. ``34.36 GFLOP``."""
    step = 0
    scaled = Fraction(number)
    while scaled >= 1000 and step < len(_DECIMAL) - 1:
        scaled, step = scaled / 1000, step + 1
    return f"{significant(scaled)} {_DECIMAL[step]}{unit}"


def seconds(number: Number) -> str:
    """A time, e.g. ``34.73 us``."""
    value = Fraction(number)
    large_enough = [(unit, scale) for unit, scale in _TIMES if value * scale >= 1]
    unit, scale = large_enough[0] if large_enough else _TIMES[-1]
    return f"{significant(value * scale)} {unit}"

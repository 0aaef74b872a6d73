"""The roofline: what the machine's levels allow at each intensity, and where each schedule stands."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from derive.exact import Number, value
from outputs.pictures.amounts import amounts

if TYPE_CHECKING:
    from hardware.roofline import Rate
    from outputs.pictures.start import Start

LEVELS = {"dram": "HBM", "l2": "L2"}
"""Levels that have a roof, and what they are called."""
_INTENSITY = {"dram": "intensity", "l2": "intensity.sm"}


@dataclass(frozen=True)
class Dot:
    """A schedule at one level.

    Attributes:
        schedule: its name.
        level: ``dram`` or ``l2``.
        intensity: useful matrix FLOP a byte of that level.
        attained: useful matrix FLOP a second, at most: every pipe and level at its peak.
    """

    schedule: str
    level: str
    intensity: Fraction
    attained: Fraction


@dataclass(frozen=True)
class Roof:
    """A machine's roofs and the schedules under them.

    Attributes:
        peak: the matrix pipe.
        levels: bytes a second by level, as far as known.
        dots: schedules that run matrix products, by level.
    """

    peak: Rate
    levels: dict[str, Rate]
    dots: tuple[Dot, ...]

    def ridge(self, level: str) -> Fraction:
        """FLOP a byte from which the matrix pipe is the slower one."""
        return Fraction(self.peak.value) / Fraction(self.levels[level].value)


def roof(start: Start) -> Roof | None:
    """The roofline of a question; ``None`` without a machine, or where a rate that it needs is not known."""
    first = start.answer.accounts[0]
    peak, levels = first.rate("mma"), {"dram": first.rate("dram"), "l2": first.rate("l2")}
    known = {level: rate for level, rate in levels.items() if rate is not None}
    if peak is None or "dram" not in known:
        return None
    dots = []
    for account in start.answer.accounts:
        found, at = amounts(start.answer, account), start.values(account)
        attained = _number(value(found["attained"], at))
        if attained == 0:  # no matrix product is run: no place on a logarithmic scale
            continue
        for level in known:
            dots.append(Dot(account.name, level, _number(value(found[_INTENSITY[level]], at)), attained))
    return Roof(peak, known, tuple(dots))


def _number(exact: Number) -> Fraction:
    return Fraction(exact)

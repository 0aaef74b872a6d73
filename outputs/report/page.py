"""What every part of the page is written from: the answer at numbers, and each amount by a name that the script knows too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.exact import Number, value
from outputs.pictures.amounts import amounts, symbols_of
from outputs.pictures.start import Slider, Start
from outputs.quantities import decimal, grouped, seconds, significant, size
from outputs.report.markup import Markup, element

if TYPE_CHECKING:
    from outputs.account import Account


def _whole(number: Number) -> str:
    """A count of bytes; half a byte of a narrow type counts as a whole one."""
    return grouped(-(-number.numerator // number.denominator))


FORMATS = {
    "size": size,
    "whole": _whole,
    "flop": lambda n: decimal(n, "FLOP"),
    "rate": lambda n: decimal(n, "FLOP/s"),
    "seconds": seconds,
    "number": significant,
}
"""How a number is written; ``page.js`` has the same."""


@dataclass(frozen=True)
class Page:
    """An answer that becomes a page.

    Attributes:
        start: the question at numbers.
        command: what was typed.
    """

    start: Start
    command: str

    @property
    def accounts(self) -> tuple[Account, ...]:
        """One a schedule."""
        return self.start.answer.accounts

    @cached_property
    def amounts(self) -> dict[str, dict[str, sp.Expr]]:
        """Every amount by schedule and name."""
        return {a.name: amounts(self.start.answer, a) for a in self.accounts}

    @cached_property
    def values(self) -> dict[str, dict[str, Number]]:
        """The numbers of each schedule, by symbol."""
        return {a.name: self.start.values(a) for a in self.accounts}

    @cached_property
    def used(self) -> dict[str, frozenset[sp.Symbol]]:
        """The symbols that each schedule's amounts depend on."""
        return {name: symbols_of(found.values()) for name, found in self.amounts.items()}

    @cached_property
    def sliders(self) -> tuple[Slider, ...]:
        """What a reader may change."""
        return self.start.sliders({name: frozenset(s.name for s in used) for name, used in self.used.items()})

    def number(self, schedule: str, key: str) -> Number:
        """The value of an amount at the start."""
        return value(self.amounts[schedule][key], self.values[schedule])

    def shown(self, schedule: str, key: str, as_: str) -> Markup:
        """An amount's value, marked so that the script finds it."""
        number = self.number(schedule, key)
        return element(
            "data",
            FORMATS[as_](number),
            value=str(number),
            data_of=f"{schedule}|{key}",
            data_as=None if as_ == "size" else as_,
        )

    def place(self, schedule: str) -> int:
        """Which of the schedules it is: its colour and marker."""
        return [a.name for a in self.accounts].index(schedule)

"""Regimes in words, and by letter where several rows of a table share one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from string import ascii_lowercase
from typing import Any

import sympy as sp

from derive.errors import clipped
from derive.laws import Regime
from outputs.notation import text
from outputs.quantities import grouped

LONGEST = 220
"""Characters of a regime; the rest of a longer one is left out."""


@dataclass
class Marks:
    """Regimes by letter, in the order in which they are met."""

    written: dict[str, str] = field(default_factory=dict)

    def of(self, regime: Regime) -> str:
        """The letter of *regime*; nothing where it holds always."""
        said = regime_in_words(regime)
        if not said:
            return ""
        if said not in self.written:
            n = len(self.written)
            self.written[said] = ascii_lowercase[n % 26] * (1 + n // 26)
        return f" [{self.written[said]}]"

    @property
    def notes(self) -> list[str]:
        """One line a regime."""
        return [f"[{letter}] {clipped(said, LONGEST)}" for said, letter in self.written.items()]


def regime_in_words(regime: Regime, shown: Callable[[Any], str] = text) -> str:
    """``B_r and B_c divide N; W <= N``: divisors of the same sizes named together, what follows from the rest left out."""
    divided: dict[str, list[str]] = {}
    for quotient in _needed(regime.whole):
        above, below = sp.fraction(quotient)
        divided.setdefault(shown(below), []).append(shown(above))
    divisors: dict[tuple[str, ...], list[str]] = {}
    for below, aboves in sorted(divided.items(), key=lambda item: (len(item[0]), item[0])):
        divisors.setdefault(tuple(sorted(aboves)), []).append(below)
    parts = [_divides(belows, aboves) for aboves, belows in divisors.items()]
    where = " and ".join(shown(c) for c in regime.where)
    return "; ".join([*parts, *([where] if where else [])])


def _needed(whole: tuple[sp.Expr, ...]) -> list[sp.Expr]:
    """Quotients that are not whole because one or two others are: N/B_c goes without saying beside N/B_r and B_r/B_c."""
    left = list(whole)
    for one in sorted(whole, key=sp.count_ops):
        others = [q for q in left if q != one]
        if any(_is_product(one / q) for q in others) or any(
            _is_product(one / (p * q)) for p, q in combinations(others, 2)
        ):
            left.remove(one)
    return left


def _is_product(quotient: sp.Expr) -> bool:
    """Whether it is a product of whole sizes."""
    above, below = sp.fraction(quotient)
    return bool(below == 1 and above.is_integer)


def _divides(divisors: list[str], multiples: tuple[str, ...]) -> str:
    if divisors == ["1"]:
        return f"{_listed(multiples)} {'is' if len(multiples) == 1 else 'are'} whole"
    return f"{_listed(divisors)} {'divides' if len(divisors) == 1 else 'divide'} {_listed(multiples)}"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def number(n: Any) -> str:
    """A whole number in groups of three digits; another one as the fraction it is."""
    return grouped(n) if n == int(n) else str(n)

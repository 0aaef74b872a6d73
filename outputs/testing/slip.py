"""One way to be wrong, and what it is told by: what it predicts is what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from derive.errors import DeriveError
from derive.exact import Number, value

Values = Mapping[str, Number]
Points = Sequence[tuple[Values, Number]]
CLOSE = Fraction(1, 10**9)
"""Relative gap up to which a slip predicts what was measured: a counter may divide in floating point."""


@dataclass(frozen=True)
class Slip:
    """One way to be wrong.

    Attributes:
        says: what was done, in a sentence without an end.
        predicts: the count it gives, from values by symbol name.
    """

    says: str
    predicts: Callable[[Values], Number]

    def explains(self, points: Points, within: Fraction = CLOSE) -> bool:
        """Whether it predicts what was measured at all of *points*, each (values, measured), one of which is wrong.

        Args:
            points: values by symbol name, and what was measured there.
            within: relative gap that passes, where what is measured is noisy.
        """
        for values, measured in points:
            try:
                predicted = self.predicts(values)
            except DeriveError:
                return False
            # relative to what is predicted, as the comparison itself is: what is right explains nothing that it refused
            if abs(Fraction(predicted) - Fraction(measured)) > within * abs(Fraction(predicted)):
                return False
        return True


def amount_at(amount: sp.Expr) -> Callable[[Values], Number]:
    """What predicts *amount*."""
    return lambda values: value(amount, values)


def scaled(amount: sp.Expr, by: Fraction) -> Callable[[Values], Number]:
    """What predicts *amount* times a number."""
    return lambda values: value(amount, values) * by

r"""A scaling law: in a regime, an amount is a sum of powers of one symbol, c_e x^e over a few exponents e.

One power says everything: scaling x by t multiplies the amount by t^e, exactly. Several with coefficients that are never
negative hold that factor between t^(lowest) and t^(highest). Outside its regime a law says nothing, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

import sympy as sp

from derive.errors import DomainError, UnboundError
from derive.exact import Number, Values, holds, value
from derive.extremes import floor_of
from derive.substitution import factored, opened, sealed

_MOST_OPERATIONS = 24
"""Of the coefficients of a factor that is brought to lowest terms; longer ones stay as they are, and nothing is shorter."""


class Evidence(Enum):
    """Where a law comes from."""

    PROVED = "proved"
    """The amount minus its sum of powers expands to zero, every symbol open; for a class, by both of its certificates."""
    CHECKED = "checked"
    """Exact values at random numbers lie on one sum of powers, more of them than it has coefficients."""


class Outcome(Enum):
    """What a test of a law found."""

    HOLDS = "holds"
    FAILS = "fails"
    OUTSIDE = "outside its regime"


@dataclass(frozen=True)
class Regime:
    """Where a law holds.

    Attributes:
        whole: quotients that must be whole numbers: N/B_r says that B_r divides N.
        where: conditions such as W <= N.
    """

    whole: tuple[sp.Expr, ...] = ()
    where: tuple[sp.Basic, ...] = ()

    def broken(self, values: Values) -> sp.Basic | None:
        """The first part that is not so at *values*: a quotient that is not whole, or a condition; ``None`` inside.

        Raises:
            UnboundError: a symbol has no value.
        """
        for quotient in self.whole:
            if Fraction(value(quotient, values)).denominator != 1:
                return quotient
        return next((c for c in self.where if not holds(c, values)), None)

    def also(self, whole: tuple[sp.Expr, ...] = (), where: tuple[sp.Basic, ...] = ()) -> Regime:
        """This regime and more, each part once; what is always so is left out."""
        conditions = dict.fromkeys(c for c in (*self.where, *where) if c != sp.true)
        return Regime(tuple(dict.fromkeys((*self.whole, *whole))), tuple(conditions))


@dataclass(frozen=True)
class Law:
    """How *amount* grows with *symbol* in a regime.

    Attributes:
        amount: the closed form it speaks of; of a class, its leading monomial.
        symbol: what is scaled.
        exponents: powers of the symbol that the amount is a sum of, lowest first; (0,) when it does not depend on it.
        regime: where that is so.
        evidence: proved or checked.
        coefficients: what stands in front of each power; empty where they were only seen as numbers.
        trials: of a checked law, how many sums of powers were seen.
        exact: whether the factor is exact; a class leaves a constant factor open.
    """

    amount: sp.Expr
    symbol: sp.Symbol
    exponents: tuple[Fraction, ...]
    regime: Regime
    evidence: Evidence
    coefficients: Mapping[Fraction, sp.Expr] = field(default_factory=dict, hash=False)
    trials: int = 0
    exact: bool = True

    @property
    def exponent(self) -> Fraction:
        """The power that leads as the symbol grows."""
        return self.exponents[-1]

    @property
    def is_independent(self) -> bool:
        """Whether the symbol plays no part."""
        return self.exponents == (Fraction(0),)

    def factor(self, by: int = 2) -> sp.Expr | None:
        """What scaling the symbol *by* multiplies the amount by; ``None`` where the law does not say.

        Exact; a number when one power is all there is, else an expression in the symbols.
        """
        if not self.exact:
            return None
        if len(self.exponents) == 1:
            return sp.Integer(by) ** sp.Rational(self.exponents[0])
        if not self.coefficients:
            return None
        names: dict[sp.Expr, sp.Symbol] = {}
        coefficients = {sp.Rational(e): sealed(c, names) for e, c in self.coefficients.items()}
        if sum(c.count_ops() for c in coefficients.values()) > _MOST_OPERATIONS:
            return sp.Mul(self._scaled(by), sp.Pow(self._scaled(1), -1, evaluate=False), evaluate=False)
        before, after = (sp.Add(*(c * (t * self.symbol) ** e for e, c in coefficients.items())) for t in (1, by))
        return opened(factored(after / before), names)

    def _scaled(self, by: int) -> sp.Expr:
        """The sum of powers, the symbol scaled *by*, left as it stands: SymPy would ask of each coefficient whether it is 0."""
        powers = (((by * self.symbol) ** sp.Rational(e), c) for e, c in self.coefficients.items())
        return sp.Add(*(sp.Mul(c, power, evaluate=False) for power, c in powers), evaluate=False)

    def bounds(self, by: int = 2) -> tuple[sp.Expr, sp.Expr] | None:
        """Between what the factor lies for all numbers of the regime; ``None`` where one of several terms may be negative."""
        if not self.exact or (len(self.exponents) > 1 and not self.coefficients):
            return None
        if len(self.exponents) > 1 and any(floor_of(c) < 0 for c in self.coefficients.values()):
            return None
        ends = [sp.Integer(by) ** sp.Rational(e) for e in (self.exponents[0], self.exponents[-1])]
        return ends[0], ends[1]

    def scales(self, values: Values, by: int = 2) -> tuple[Outcome, Number | None]:
        """Whether the exact amount does as the law says when the symbol is scaled *by* from *values*.

        Returns:
            The outcome, and the factor that was found; outside the regime, at either end, there is none.

        Raises:
            UnboundError: a symbol has no value.
        """
        if not self.exact:
            return Outcome.OUTSIDE, None  # a class has no factor at any one size
        name = self.symbol.name
        scaled = {**values, name: values[name] * by}
        if any(self.regime.broken(at) is not None for at in (values, scaled)):
            return Outcome.OUTSIDE, None
        before, after = (Fraction(value(self.amount, at)) for at in (values, scaled))
        if not before:
            return (Outcome.HOLDS if not after else Outcome.FAILS), None
        found = after / before
        expected = self.factor(by)
        if expected is None:
            return Outcome.HOLDS, found
        return (Outcome.HOLDS if found == value(expected, values) else Outcome.FAILS), found

    def at(self, values: Values) -> Number | None:
        """The sum of powers at *values*; ``None`` where coefficients are not known as formulas, or outside the regime."""
        try:
            if not self.coefficients or self.regime.broken(values) is not None:
                return None
            return value(sp.Add(*(c * self.symbol ** sp.Rational(e) for e, c in self.coefficients.items())), values)
        except (UnboundError, DomainError):
            return None


@dataclass(frozen=True)
class Open:
    """That no law of an amount was found in any regime that was looked at, and what speaks against one in the last.

    Attributes:
        amount: the closed form.
        symbol: what is scaled.
        regime: the narrowest one in which the amount was seen to be no sum of powers; of several, the last.
        points: numbers in it that differ in the symbol; none where no numbers were found to look at.
        values: the amounts there, which lie on no sum of powers x^-1 .. x^2.
        why: what was wrong where there are none.
    """

    amount: sp.Expr
    symbol: sp.Symbol
    regime: Regime
    points: tuple[Mapping[str, Number], ...] = ()
    values: tuple[Fraction, ...] = ()
    why: str = ""

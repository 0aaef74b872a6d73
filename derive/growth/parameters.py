"""Monomials as linear forms: with every quantity replaced by its logarithm, a product of powers is a sum.

A parameter is at least 1, or, for a fraction such as a block density, at most 1; the form then speaks of its reciprocal, so
that every coordinate is at least 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import sympy as sp

from derive.errors import DomainError, clipped
from derive.growth.cone import Cone, Form, primitive
from derive.growth.linear import ZERO, Vector, minus
from derive.substitution import free
from derive.symbols import is_fraction

_LONGEST = 120
"""Characters of an expression in a message."""
Exponents = Mapping[sp.Symbol, Fraction]
"""A monomial without its coefficient: the exponent of each symbol."""
Condition = tuple[sp.Expr, sp.Expr]
"""``(small, big)``: small <= big; a number in front of small, as in 4 W <= N, makes it stricter by a constant."""


@dataclass(frozen=True)
class Parameters:
    """The symbols that a class speaks of, in order.

    Attributes:
        symbols: each at least 1, fractions at most 1.
        shares: those of a user's own that are at most 1, beside the engine's fractions.
    """

    symbols: tuple[sp.Symbol, ...]
    shares: frozenset[sp.Symbol] = frozenset()

    @staticmethod
    def of(expressions: Iterable[sp.Basic], tiles: Iterable[sp.Symbol] = ()) -> Parameters:
        """The symbols of *expressions*, those of *tiles* apart."""
        found = {s for e in expressions for s in free(e)} - set(tiles)
        return Parameters(tuple(sorted(found, key=str)))

    def form(self, exponents: Exponents) -> Vector:
        """The form of a monomial in these parameters."""
        powers = ((sign, exponents.get(s, ZERO)) for s, sign in zip(self.symbols, self._signs, strict=True))
        return tuple(e if sign > 0 else -e for sign, e in powers)

    def monomial(self, form: Iterable[Fraction | int]) -> sp.Expr:
        """The monomial that *form* is the logarithm of."""
        powers = zip(self.symbols, self._signs, form, strict=True)
        return sp.Mul(*(s ** sp.Rational(Fraction(sign * e)) for s, sign, e in powers))

    def condition(self, form: Iterable[Fraction | int]) -> Condition:
        """``form >= 0`` as small <= big, with whole exponents: d^(1/2) <= M^(1/2) is d <= M."""
        exponents = [sign * e for sign, e in zip(self._signs, primitive(form), strict=True)]
        sides = [
            sp.Mul(*(s ** max(sign * e, 0) for s, e in zip(self.symbols, exponents, strict=True))) for sign in (-1, 1)
        ]
        return sides[0], sides[1]

    def conditions(self, region: Cone, within: Cone | None = None) -> tuple[Condition, ...]:
        """What bounds *region*, as small <= big; what holds in all of *within* goes without saying."""
        return tuple(self.condition(f) for f in region.facets if within is None or not within.implies(f))

    def normal(self, condition: Condition) -> Form:
        """The form that is not negative where *condition* holds; a number in front of what is small is left out of it.

        Raises:
            DomainError: a side that is no monomial, or that has another number in front than 1, or small than 1 or more.
        """
        number, _ = split(condition[0])
        small, big = (exponents_of(side) for side in (condition[0] / max(number, 1), condition[1]))
        unknown = ({*small, *big}) - set(self.symbols)
        if unknown:
            names = ", ".join(sorted(map(str, unknown)))
            raise DomainError(f"{condition[0]} <= {condition[1]} speaks of {names}, which the count does not depend on")
        return primitive(minus(self.form(big), self.form(small)))

    @cached_property
    def _signs(self) -> tuple[int, ...]:
        return tuple(-1 if s in self.shares or is_fraction(s) else 1 for s in self.symbols)


def exponents_of(monomial: sp.Expr) -> dict[sp.Symbol, Fraction]:
    """The exponent of each symbol of *monomial*, whose coefficient must be 1.

    Raises:
        DomainError: it is no product of powers of symbols.
    """
    coefficient, found = split(monomial)
    if coefficient != 1:
        raise DomainError(f"{monomial} has the number {coefficient} in front; classes and regimes leave constants out")
    return found


def shown(expression: sp.Basic) -> str:
    """*expression* as it may stand in a message: the start of a long one."""
    return clipped(plain(expression), _LONGEST)


def plain(expression: sp.Basic) -> str:
    """*expression* as it is written by hand: ``N_q d^2/M``."""
    return str(expression).replace("**", "^").replace("*", " ")


def split(term: sp.Expr) -> tuple[sp.Rational, dict[sp.Symbol, Fraction]]:
    """The coefficient and the exponents of one term.

    Raises:
        DomainError: the term is no number times a product of powers of symbols.
    """
    coefficient, rest = term.as_coeff_Mul()
    powers = rest.as_powers_dict()
    for base, exponent in powers.items():
        if base != 1 and not (base.is_Symbol and exponent.is_Rational and coefficient.is_Rational):
            raise DomainError(
                f"{shown(term)} is no monomial: {shown(base**exponent)} is no power of a symbol with a rational exponent"
            )
    return coefficient, {s: Fraction(int(e.p), int(e.q)) for s, e in powers.items() if s != 1 and e != 0}

"""The Theta class of an expression of one's own, with its leading terms and their constants, as sizes grow.

    theta(2*N*d + 4*N**2*d**2/M + N*ceiling(N/B), where=["d <= M <= N*d"])

Everything grows without bound unless it is said to be at most 1. (``sympy.Order`` expands at zero unless told otherwise:
there N + N^2 is O(N).)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from derive.cost import Cost
from derive.errors import DomainError
from derive.growth.cone import Cone
from derive.growth.dominance import Dominated, dominated
from derive.growth.linear import Vector
from derive.growth.parameters import Condition, Parameters
from derive.growth.posynomial import Facts, Term, above, below, smooth
from derive.growth.program import leading, led, region_of
from derive.growth.reading import read_condition
from derive.symbols import is_fraction


@dataclass(frozen=True)
class LeadingTerm:
    """One monomial of the class.

    Attributes:
        monomial: the monomial.
        constant: the number in front of it, roundings dropped; ``None`` where a rounding or an extreme leaves it open.
        where: where it is the largest, as small <= big.
    """

    monomial: sp.Expr
    constant: sp.Expr | None
    where: tuple[Condition, ...]


@dataclass(frozen=True)
class Theta:
    """A class: never an amount.

    Attributes:
        terms: monomials that lead somewhere in the regime; the class is Theta of their sum.
        dropped: monomials that never lead, each with why.
        unit: what is counted, when the expression said so.
    """

    terms: tuple[LeadingTerm, ...]
    dropped: tuple[Dominated, ...]
    unit: str = ""

    @property
    def total(self) -> sp.Expr:
        """The sum of the monomials."""
        return sp.Add(*(t.monomial for t in self.terms))


def theta(amount: Cost | sp.Expr, where: Iterable[str | Condition] = ()) -> Theta:
    """The class of *amount* in a regime.

    Args:
        amount: a cost, or an expression whose symbols are positive; sums, products, powers, ceilings, floors, min and max.
        where: the regime: conditions as text, ``"d <= M <= N*d"``, or as (small, big) pairs. A symbol that is no positive
            integer needs one here: ``1 <= x``, or ``s <= 1`` for a share.

    Raises:
        DomainError: a symbol about which nothing is known, an expression that is no sum of monomials, or a regime that
            contradicts itself.
        BadValueError: a regime that cannot be read.
    """
    expression = amount.amount if isinstance(amount, Cost) else amount
    names = {s.name: s for s in expression.free_symbols}
    conditions = [c for w in where for c in (read_condition(w, names) if isinstance(w, str) else [w])]
    shares = frozenset(small for small, big in conditions if big == 1 and small.is_Symbol)
    stated = {big for small, big in conditions if small == 1} | shares
    for symbol in sorted(expression.free_symbols, key=str):
        known = symbol.is_positive and (symbol.is_integer or is_fraction(symbol))
        if not known and symbol not in stated:
            raise DomainError(
                f"nothing is known of {symbol}: declare it a positive integer, or state 1 <= {symbol} or {symbol} <= 1"
            )
    conditions = [c for c in conditions if 1 not in c]
    parameters = Parameters(Parameters.of((expression, *(side for c in conditions for side in c))).symbols, shares)
    region = region_of(parameters, conditions)
    facts = Facts.of(parameters.symbols, conditions, shares)
    up, low = above(expression, facts), below(expression, facts)
    kept = _leading(parameters, region, up)
    if set(kept) != set(_leading(parameters, region, low)):
        raise DomainError(
            f"{expression} is O({_sum(parameters, kept)}) and Omega({_sum(parameters, _leading(parameters, region, low))}): "
            "the bounds on its roundings do not meet in this regime"
        )
    try:
        exact = smooth(expression, facts)
    except DomainError:  # an extreme without one winner
        exact = []
    terms = []
    for form in kept:
        there = parameters.conditions(led(region, form, kept), within=region)
        terms.append(LeadingTerm(parameters.monomial(form), _constant(parameters, form, exact), there))
    forms = dict.fromkeys(parameters.form(t.exponents) for t in up)
    dropped = tuple(dominated(parameters, region, f, kept) for f in forms if f not in kept)
    return Theta(tuple(terms), dropped, amount.unit.value if isinstance(amount, Cost) else "")


def _leading(parameters: Parameters, region: Cone, terms: Iterable[Term]) -> tuple[Vector, ...]:
    forms = [parameters.form(t.exponents) for t in terms]
    if not forms:
        raise DomainError("the expression may be zero in this regime: it has no class")
    return leading(region, forms)


def _constant(parameters: Parameters, form: Vector, terms: Iterable[Term]) -> sp.Expr | None:
    found = sp.Add(*(t.coefficient for t in terms if parameters.form(t.exponents) == form))
    return found if found > 0 else None


def _sum(parameters: Parameters, forms: Iterable[Vector]) -> str:
    return " + ".join(str(parameters.monomial(f)) for f in forms)

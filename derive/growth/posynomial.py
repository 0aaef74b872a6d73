"""A count held between two sums of monomials: ceilings, minima and differences bounded, with what makes each bound legal.

A class needs a count only up to constants, but it needs it from both sides. ``above`` replaces ceil(x) by x + 1 and leaves out
what is taken off; ``below`` replaces ceil(x) by x and sets each negative term against a positive one that is never smaller
under the facts (tiles are at most their extents, the regime holds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import sympy as sp

from derive.errors import DomainError
from derive.growth.cone import Cone
from derive.growth.linear import minus
from derive.growth.parameters import Condition, Exponents, Parameters, shown, split


@dataclass(frozen=True, slots=True)
class Term:
    """A number times a monomial."""

    coefficient: sp.Rational
    exponents: Exponents

    @property
    def monomial(self) -> sp.Expr:
        """The monomial alone."""
        return sp.Mul(*(s ** sp.Rational(e) for s, e in self.exponents.items()))


@dataclass(frozen=True)
class Facts:
    """What is known of the symbols of a count, tiles included: each is at least 1, fractions at most 1, and ``region``.

    Attributes:
        parameters: every symbol.
        region: where they lie.
        decided: whether an extreme must have one winner throughout; otherwise a maximum is held between the mean and the sum.
    """

    parameters: Parameters
    region: Cone
    decided: bool = False

    @staticmethod
    def of(expressions: Iterable[sp.Basic], conditions: Iterable[Condition], shares: frozenset[sp.Symbol]) -> Facts:
        """The facts that *conditions* make about all symbols of *expressions*, as far as they are about those."""
        conditions = tuple(conditions)
        named = Parameters.of((*expressions, *(side for c in conditions for side in c)))
        parameters = Parameters(named.symbols, shares)
        region = Cone.orthant(len(parameters.symbols))
        return Facts(parameters, region.cut_all(parameters.normal(c) for c in conditions))

    def never_above(self, small: Exponents, big: Exponents) -> bool:
        """Whether monomial *small* is at most *big* under the facts."""
        return self.region.implies(minus(self.parameters.form(big), self.parameters.form(small)))


def above(amount: sp.Expr, facts: Facts) -> list[Term]:
    """Terms whose sum is never below *amount*.

    Raises:
        DomainError: it is not bounded by a sum of monomials.
    """
    terms = [split(t) for t in sp.Add.make_args(sp.expand(_bounded(amount, facts, up=True)))]
    return [Term(c, e) for c, e in terms if c > 0]


def below(amount: sp.Expr, facts: Facts) -> list[Term]:
    """Terms whose sum is never above *amount*.

    Raises:
        DomainError: what is taken off is not bounded by what it is taken off from.
    """
    bound = sp.expand(_bounded(amount, facts, up=False))
    found = _difference(bound, facts)
    if found is None:
        raise DomainError(
            f"{shown(amount)} is no sum of monomials under the stated regime: a negative term is not outweighed"
        )
    return found


def smooth(amount: sp.Expr, facts: Facts) -> list[Term]:
    """The signed terms of *amount* with ceilings dropped: what it tends to where every loop has many trips, or just one."""
    bound = sp.expand(_bounded(amount, replace(facts, decided=True), up=False))
    return [Term(c, e) for c, e in map(split, sp.Add.make_args(bound))]


def _difference(expression: sp.Expr, facts: Facts) -> list[Term] | None:
    """*expression* with each negative term set against positive ones never smaller; ``None`` where that fails."""
    terms = [split(t) for t in sp.Add.make_args(expression)]
    positive = [[c, e] for c, e in terms if c > 0]
    for coefficient, exponents in ((c, e) for c, e in terms if c < 0):
        owed = -coefficient
        for held in positive:
            if owed > 0 and held[0] > 0 and facts.never_above(exponents, held[1]):
                paid = min(owed, held[0])
                held[0], owed = held[0] - paid, owed - paid
        if owed > 0:
            return None
    return [Term(c, e) for c, e in positive if c > 0]


def _bounded(e: sp.Expr, facts: Facts, *, up: bool) -> sp.Expr:
    """*e* with everything but sums and products of symbols replaced by a bound from above (*up*) or below."""
    if e.is_Symbol or e.is_Rational:
        return e
    if e.is_Add:
        return sp.Add(*(_bounded(a, facts, up=up) for a in e.args))
    if e.is_Mul:
        coefficient, rest = e.as_coeff_Mul()
        side = up if coefficient > 0 else not up
        if coefficient != 1:
            return coefficient * _bounded(rest, facts, up=side)
        return sp.Mul(*(_bounded(a, facts, up=up) for a in e.args))
    if e.is_Pow and e.exp.is_Rational and (e.base.is_Symbol or (e.exp.is_Integer and e.exp > 0)):
        return _bounded(e.base, facts, up=up) ** e.exp
    return _BOUNDS.get(e.func, _refused)(e, facts, up)


def _ceiling(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    inside = _bounded(e.args[0], facts, up=up)
    return inside + 1 if up else inside


def _floor(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    inside = _bounded(e.args[0], facts, up=up)
    return inside if up else inside - 1


def _cases(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    """The first case, in which every loop has several trips; one trip is a tile as large as its extent, asked for apart."""
    return _bounded(e.args[0][0], facts, up=up)


def _extreme(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    """The member that is the extreme throughout; failing that, a maximum lies between the mean and the sum of its members."""
    largest = isinstance(e, sp.Max)
    for candidate in e.args:
        others = [(candidate - o if largest else o - candidate) for o in e.args if o != candidate]
        if all(_never_negative(difference, facts) for difference in others):
            return _bounded(candidate, facts, up=up)
    if largest and not facts.decided and all(_never_negative(a, facts) for a in e.args):
        return sp.Add(*(_bounded(a, facts, up=up) for a in e.args)) / (1 if up else len(e.args))
    word = "max" if largest else "min"
    members = shown(sp.Tuple(*e.args))[1:-1]
    raise DomainError(f"{word}({members}) is undecided: give a regime that says which is larger")


def _never_negative(difference: sp.Expr, facts: Facts) -> bool:
    try:
        return _difference(sp.expand(_bounded(difference, facts, up=False)), facts) is not None
    except DomainError:
        return False


def _refused(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:  # noqa: ARG001
    raise DomainError(f"{shown(e)} is no sum of monomials: {e.func.__name__} has no exponents")


_BOUNDS: dict[type, Callable[[sp.Expr, Facts, bool], sp.Expr]] = {
    sp.ceiling: _ceiling,
    sp.floor: _floor,
    sp.Piecewise: _cases,
    sp.Max: _extreme,
    sp.Min: _extreme,
}

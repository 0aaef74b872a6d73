"""A count held between two sums of monomials: ceilings, minima and differences bounded, with what makes each bound legal.

A class needs a count only up to constants, but it needs it from both sides. ``above`` replaces ceil(x) by x + 1 and leaves out
what is taken off; ``below`` replaces ceil(x) by x and sets each negative term against a positive one that is never smaller
under the facts (tiles are at most their extents, the regime holds). Where f = floor(x/y) stands beside x, as in the pairs of
whole chunks, x is written f y + r first, with 0 <= r < y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import sympy as sp

from derive.errors import DomainError
from derive.growth.cone import Cone, Form
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
        shares: of conditions with a number n in front of what is small, its form and 1/n: big times 1/n is never below it.
        decided: whether an extreme must have one winner throughout; otherwise a maximum is held between the mean and the sum.
    """

    parameters: Parameters
    region: Cone
    shares: tuple[tuple[Form, sp.Rational], ...] = ()
    decided: bool = False

    @staticmethod
    def of(expressions: Iterable[sp.Basic], conditions: Iterable[Condition], shares: frozenset[sp.Symbol]) -> Facts:
        """The facts that *conditions* make about all symbols of *expressions*, as far as they are about those."""
        conditions = tuple(conditions)
        named = Parameters.of((*expressions, *(side for c in conditions for side in c)))
        return _facts(Parameters(named.symbols, shares), conditions)

    def share_of(self, small: Exponents, big: Exponents) -> sp.Rational | None:
        """A number of which *big* times it is never below monomial *small* under the facts, at most 1; ``None`` for none."""
        apart = minus(self.parameters.form(big), self.parameters.form(small))
        if not self.region.implies(apart):
            return None
        stricter = (n for form, n in self.shares if self.region.implies(minus(apart, [Fraction(x) for x in form])))
        return min(stricter, default=sp.S.One)


@lru_cache(maxsize=256)
def _facts(parameters: Parameters, conditions: tuple[Condition, ...]) -> Facts:
    """The facts that *conditions* make about *parameters*."""
    normals = [parameters.normal(c) for c in conditions]
    apart = ((form, 1 / split(c[0])[0]) for form, c in zip(normals, conditions, strict=True))
    known = Cone.orthant(len(parameters.symbols)).cut_all(normals)
    return Facts(parameters, known, tuple((form, share) for form, share in apart if share < 1))


def above(amount: sp.Expr, facts: Facts) -> list[Term]:
    """Terms whose sum is never below *amount*.

    Raises:
        DomainError: it is not bounded by a sum of monomials.
    """
    terms = [split(t) for t in sp.Add.make_args(sp.expand(_bounded(_settled(amount, facts), facts, up=True)))]
    return [Term(c, e) for c, e in terms if c > 0]


def below(amount: sp.Expr, facts: Facts) -> list[Term]:
    """Terms whose sum is never above *amount*.

    Raises:
        DomainError: what is taken off is not bounded by what it is taken off from.
    """
    bound = sp.expand(_bounded(_settled(amount, facts), facts, up=False))
    found = _difference(bound, facts)
    if found is None:
        raise DomainError(
            f"{shown(amount)} is no sum of monomials under the stated regime: a negative term is not outweighed; "
            "state with --where what outweighs it, or count it exactly with `derive explain`"
        )
    return found


def smooth(amount: sp.Expr, facts: Facts) -> list[Term]:
    """The signed terms of *amount* with ceilings dropped: what it tends to where every loop has many trips, or just one."""
    bound = sp.expand(_bounded(_settled(amount, facts), replace(facts, decided=True), up=False))
    return [Term(c, e) for c, e in map(split, sp.Add.make_args(bound))]


def _difference(expression: sp.Expr, facts: Facts) -> list[Term] | None:
    """*expression* with each negative term set against positive ones never smaller; ``None`` where that fails."""
    terms = [split(t) for t in sp.Add.make_args(expression)]
    positive = [[c, e] for c, e in terms if c > 0]
    debts = []
    for coefficient, exponents in ((c, e) for c, e in terms if c < 0):
        shares = [(held, facts.share_of(exponents, held[1])) for held in positive]
        debts.append((-coefficient, [(held, share) for held, share in shares if share is not None]))
    for owed, payers in sorted(debts, key=lambda debt: len(debt[1])):  # what one term alone can pay comes first
        for held, share in sorted(payers, key=lambda payer: -payer[0][0] / payer[1]):  # and the largest pays first
            if owed > 0 and held[0] > 0:
                paid = min(owed, held[0] / share)
                held[0], owed = held[0] - paid * share, owed - paid
        if owed > 0:
            return None
    return [Term(c, e) for c, e in positive if c > 0]


def _settled(e: sp.Expr, facts: Facts) -> sp.Expr:
    """*e* with each extreme that has one winner throughout replaced by it, innermost first."""
    if not e.has(sp.Min, sp.Max) or isinstance(e, sp.Sum):
        return e
    if isinstance(e, sp.Piecewise):  # the first case, as below
        return _settled(e.args[0][0], facts)
    parts = [_settled(a, facts) if isinstance(a, sp.Expr) else a for a in e.args]
    if isinstance(e, sp.Min | sp.Max):
        e = e.func(*parts, evaluate=False)
        winner = _winner(e, facts)
        return e if winner is None else winner
    return sp.expand(e.func(*parts), deep=False)


def _bounded(e: sp.Expr, facts: Facts, *, up: bool) -> sp.Expr:
    """*e* with everything but sums and products of symbols replaced by a bound from above (*up*) or below."""
    if e.is_Symbol or e.is_Rational:
        return e
    if e.is_Add:
        return sp.Add(*(_bounded(a, facts, up=up) for a in sp.Add.make_args(_in_whole_parts(e, up))))
    if e.is_Mul:
        coefficient, rest = e.as_coeff_Mul()
        side = up if coefficient > 0 else not up
        if coefficient != 1:
            return coefficient * _bounded(rest, facts, up=side)
        return sp.Mul(*(_bounded(a, facts, up=up) for a in e.args))
    if e.is_Pow and e.exp.is_Rational and (e.base.is_Symbol or (e.exp.is_Integer and e.exp > 0)):
        return _bounded(e.base, facts, up=up) ** e.exp
    return _BOUNDS.get(e.func, _refused)(e, facts, up)


def _in_whole_parts(e: sp.Expr, up: bool) -> sp.Expr:
    """*e* with x written as f y + r beside f = floor(x/y); what has r in it is bounded by 0 <= r <= y."""
    whole = {
        f for term in e.args for f in term.as_powers_dict() if f.func is sp.floor and term.could_extract_minus_sign()
    }
    for f in sorted(whole, key=str):
        x, y = f.args[0].as_numer_denom()
        if not (x.is_Symbol and y.is_Symbol):
            continue
        rest = sp.Dummy("r")
        bounds = []
        for term in sp.Add.make_args(sp.expand(e)):
            power = sp.S.Zero + term.as_powers_dict()[x]
            bounds.append(term / x**power * (f * y + rest) ** power if power.is_Integer and power > 0 else term)
        bounds = sp.Add.make_args(sp.expand(sp.Add(*bounds)))
        e = sp.Add(*(t.xreplace({rest: y if (t.as_coeff_Mul()[0] > 0) == up else sp.S.Zero}) for t in bounds))
    return e


def _ceiling(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    inside = _bounded(e.args[0], facts, up=up)
    return inside + 1 if up else inside


def _floor(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    inside = _bounded(e.args[0], facts, up=up)
    if up or facts.decided:
        return inside
    return inside / 2 if _never_negative(inside - 1, facts) else inside - 1


def _cases(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    """The first case, in which every loop has several trips; one trip is a tile as large as its extent, asked for apart."""
    return _bounded(e.args[0][0], facts, up=up)


def _extreme(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:
    """The member that is the extreme throughout; failing that, a maximum lies between the mean and the sum of its members."""
    largest = isinstance(e, sp.Max)
    if (winner := _winner(e, facts)) is not None:
        return _bounded(winner, facts, up=up)
    if largest and not facts.decided and all(_never_negative(a, facts) for a in e.args):
        return sp.Add(*(_bounded(a, facts, up=up) for a in e.args)) / (1 if up else len(e.args))
    within = min(e.atoms(sp.Min, sp.Max), key=lambda x: (sp.count_ops(x), str(x)))
    word = "max" if isinstance(within, sp.Max) else "min"
    members = shown(sp.Tuple(*within.args))[1:-1]
    raise DomainError(f"{word}({members}) is undecided: give a regime that says which is larger")


def _winner(e: sp.Expr, facts: Facts) -> sp.Expr | None:
    """The member that is the extreme throughout."""
    opposite = sp.Min if isinstance(e, sp.Max) else sp.Max
    for candidate in e.args:
        rivals = (o for o in e.args if o != candidate and not (isinstance(o, opposite) and candidate in o.args))
        others = (candidate - o if isinstance(e, sp.Max) else o - candidate for o in rivals)
        if all(_never_negative(difference, facts) for difference in others):
            return candidate
    return None


def _never_negative(difference: sp.Expr, facts: Facts) -> bool:
    """Whether *difference*, or each factor of it, is a difference whose negative terms are outweighed."""
    try:
        bound = sp.expand(_bounded(difference, facts, up=False))
    except DomainError:
        return False
    if _difference(bound, facts) is not None:
        return True
    coefficient, factors = sp.factor_list(bound) if bound.is_Add and bound.is_polynomial() else (sp.S.One, [])
    return len(factors) > 1 and coefficient > 0 and all(_difference(f, facts) is not None for f, _ in factors)


def _refused(e: sp.Expr, facts: Facts, up: bool) -> sp.Expr:  # noqa: ARG001
    raise DomainError(f"{shown(e)} is no sum of monomials: {e.func.__name__} has no exponents")


_BOUNDS: dict[type, Callable[[sp.Expr, Facts, bool], sp.Expr]] = {
    sp.ceiling: _ceiling,
    sp.floor: _floor,
    sp.Piecewise: _cases,
    sp.Max: _extreme,
    sp.Min: _extreme,
}

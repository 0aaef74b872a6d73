r"""Laws by algebra: roundings dropped where divisors divide, extremes decided by the regime, and the rest expanded.

    sum_{i < T} min(N, B_c ceil((i + 1) B_r / B_c)),  B_r | N,  B_c | B_r   =   N^2/(2 B_r) + N/2

ceil(x) is x where x is whole: the regime says so. A minimum is decided by putting N = T B_r (and, under a mask, N = W + t), so
that a difference has a sign that shows. What is then a sum of powers of the symbol is a law; anything else is left to
``derive.laws.check``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import sympy as sp

from derive.choice import at_most
from derive.extremes import floor_of
from derive.laws.homogeneous import degree
from derive.laws.law import Evidence, Law, Regime
from derive.laws.roles import Roles
from derive.substitution import opened, put, sealed
from derive.symbols import dummy

MOST_OPERATIONS = 60
"""Of a sum's text; one that is longer takes minutes to decide, and has come to nothing."""

MOST_MEMBERS = 6
"""Cases of undecided extremes that are told apart; of more, a reader learns nothing: there are hundreds under a mask of several
sizes, and where these fit the keys, which is what ``checked`` looks at, one of them holds."""


def laws(amount: sp.Expr, symbol: sp.Symbol, roles: Roles | None = None) -> list[Law]:
    """Proved laws of *amount* in *symbol*, one a case; empty where it is no sum of powers in one of them.

    Args:
        amount: a closed form without case distinctions; extremes may be undecided, each member is a case then, ``MOST_MEMBERS``
            at most.
        symbol: what is scaled.
        roles: what each symbol is, for the regime; nothing is known unless given.
    """
    roles = roles or Roles()
    amount = _grouped(amount, roles.divides)
    allowed = Regime(tuple(b / a for a, b in roles.divides if symbol in (a, b) and amount.has(symbol)))
    scaled = degree(amount, symbol)
    if scaled is not None:
        front = {scaled: amount / symbol ** sp.Rational(scaled)}
        return [Law(amount, symbol, (scaled,), allowed, Evidence.PROVED, front)]
    plain = powers(amount, symbol)
    if plain is not None:
        return [_law(amount, symbol, plain, allowed)]
    if any(total.count_ops() > MOST_OPERATIONS for total in amount.atoms(sp.Sum)):
        return []
    found: list[Law] = []
    whole, smooth, fit = _smooth(amount, symbol, roles)
    cases = list(islice(_winners(smooth, symbol), MOST_MEMBERS + 1))
    if len(cases) > MOST_MEMBERS:
        return []
    for one, conditions in cases:
        terms = powers(one, symbol)
        if terms is None:
            return []
        found.append(_law(amount, symbol, terms, allowed.also(tuple(whole), (*conditions, *fit))))
    return found


@lru_cache(maxsize=2**8)
def _grouped(amount: sp.Expr, divides: tuple[tuple[sp.Symbol, sp.Symbol], ...]) -> sp.Expr:
    """*amount* with extremes decided that are plain once one size divides another: h is at least h_k."""
    for n, (divisor, dividend) in enumerate(divides):
        if any(e.has(dividend) for e in amount.atoms(sp.Min, sp.Max)) and dividend.is_Symbol:
            share = sp.Symbol(f"G_{n}", positive=True, integer=True)
            decided = put(amount, {dividend: share * divisor})
            if len(decided.atoms(sp.Min, sp.Max)) < len(amount.atoms(sp.Min, sp.Max)):
                amount = put(decided, {share: dividend / divisor})
    return amount


def proved(amount: sp.Expr, symbol: sp.Symbol, roles: Roles | None = None) -> Law | None:
    """The one law of *amount* in *symbol*; ``None`` where there is none, or another one in each of several cases."""
    found = laws(amount, symbol, roles)
    return found[0] if len(found) == 1 else None


def told_apart(amount: sp.Expr, most: int) -> list[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """The cases of *amount*, outermost first, each with every condition it stands under; of more than *most*, the two ends."""
    found = list(islice(_cases(amount), most + 1))
    return found if len(found) <= most else [found[0], _last_case(amount)]


def _cases(amount: sp.Expr) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    split = _split(amount)
    if split is None:
        yield amount, ()
        return
    for part, own in split:
        for one, more in _cases(part):
            yield one, (own, *more)


def _last_case(amount: sp.Expr) -> tuple[sp.Expr, tuple[sp.Basic, ...]]:
    conditions = []
    while (split := _split(amount)) is not None:
        amount, condition = split[1]
        conditions.append(condition)
    return amount, tuple(conditions)


def _split(amount: sp.Expr) -> tuple[tuple[sp.Expr, sp.Basic], tuple[sp.Expr, sp.Basic]] | None:
    """*amount* where its first condition holds, and where it fails; ``None`` without case distinctions."""
    choices = amount.atoms(sp.Piecewise)
    if not choices:
        return None
    condition = _extreme_of(choices, max).args[0][1]
    holds, fails = {}, {}
    for choice in choices:
        if choice.args[0][1] == condition:
            rest = choice.args[1:]
            holds[choice] = choice.args[0][0]
            fails[choice] = rest[0][0] if rest[0][1] == sp.true else sp.Piecewise(*rest, evaluate=False)
    otherwise = sp.to_nnf(sp.Not(condition), simplify=False)
    return (put(amount, holds), condition), (put(amount, fails), otherwise)


def _law(amount: sp.Expr, symbol: sp.Symbol, terms: dict[Fraction, sp.Expr], regime: Regime) -> Law:
    coefficients = dict(sorted(terms.items())) or {Fraction(0): sp.Integer(0)}
    return Law(amount, symbol, tuple(coefficients), regime, Evidence.PROVED, coefficients)


def powers(amount: sp.Expr, symbol: sp.Symbol) -> dict[Fraction, sp.Expr] | None:
    """The coefficient of each power of *symbol* in *amount*; ``None`` where it is no sum of powers."""
    closed: dict[sp.Expr, sp.Symbol] = {}
    found: dict[Fraction, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(sealed(amount, closed))):
        exponent = term.as_powers_dict().get(symbol, sp.Integer(0))
        coefficient = term / symbol**exponent
        if not exponent.is_Rational or coefficient.has(symbol):
            return None
        power = Fraction(int(exponent.p), int(exponent.q))
        found[power] = found.get(power, sp.Integer(0)) + coefficient
    if any(kept.has(symbol) for kept in closed):
        return None
    return {e: opened(sp.factor_terms(c), closed) for e, c in found.items() if c != 0}


def _smooth(amount: sp.Expr, symbol: sp.Symbol, roles: Roles) -> tuple[list[sp.Expr], sp.Expr, tuple[sp.Basic, ...]]:
    """What must be whole, *amount* without the roundings and sums that *symbol* stands in, and what the mask's sizes fit."""
    whole: list[sp.Expr] = []
    summed = _summed(amount, symbol, whole)
    roomy = _with_room(summed, symbol, roles)
    return whole, _dropped(roomy, symbol, whole), () if roomy == summed else roles.fit


def _with_room(amount: sp.Expr, symbol: sp.Symbol, roles: Roles) -> sp.Expr:
    """*amount* with extremes decided where the sizes of the mask fit the keys: N = W + t."""
    extremes = amount.atoms(sp.Min, sp.Max)
    if not roles.sizes or not roles.sizes[0][1].is_Symbol or not any(e.has(symbol) for e in extremes):
        return amount
    keys, room = roles.sizes[0][1], dummy("t_0")
    decided = put(amount, {keys: roles.span + room})
    return amount if len(decided.atoms(sp.Min, sp.Max)) >= len(extremes) else put(decided, {room: keys - roles.span})


def _summed(amount: sp.Expr, symbol: sp.Symbol, whole: list[sp.Expr]) -> sp.Expr:
    """Sums over row tiles in closed form, where the tiles divide; one that has none stays."""
    made = {}
    for one in amount.atoms(sp.Sum):
        closed = _closed(one, whole) if one.has(symbol) else None
        if closed is not None:
            made[one] = closed
    return put(amount, made) if made else amount


def _closed(one: sp.Sum, whole: list[sp.Expr]) -> sp.Expr | None:
    """``sum_{i = 0 .. ceil(N/B) - 1}`` of what is a polynomial in i once N is a multiple of B."""
    (index, low, high) = one.args[1].args
    last = high + 1
    if low != 0 or last.func is not sp.ceiling or len(one.args) != 2:
        return None
    length, tile = sp.fraction(last.args[0])
    if not length.is_Symbol or not tile.is_Symbol:
        return None
    trips, left = sp.Symbol("T_0", positive=True, integer=True), dummy("j_0")
    term = put(put(one.args[0], {length: trips * tile}), {index: trips - 1 - left})
    quotients: list[sp.Expr] = []
    inside = sp.expand(_dropped(term, tile, quotients))
    if inside.has(sp.Min, sp.Max, sp.floor, sp.ceiling, sp.Piecewise, sp.Sum) or not inside.is_polynomial(left):
        return None
    parts = [q for quotient in quotients for q in _whole_parts(quotient, (left, trips))]
    whole += [length / tile, *parts]
    total = sp.summation(inside, (left, 0, trips - 1))
    return sp.expand(total).subs(trips, length / tile)


def _whole_parts(quotient: sp.Expr, counts: tuple[sp.Symbol, ...]) -> list[sp.Expr]:
    """Quotients that make *quotient* whole whatever the *counts*: of (T - j) B_r/B_c it is B_r/B_c."""
    found = []
    for term in sp.Add.make_args(sp.expand(quotient)):
        rest = term.as_independent(*counts, as_Add=False)[0]
        rest = abs(rest) if rest.is_number else sp.Mul(*(f for f in rest.args if f != -1)) if rest.is_Mul else rest
        if not (rest.is_Integer or (rest.is_Symbol and rest.is_integer)):
            found.append(rest)
    return list(dict.fromkeys(found))


def _dropped(amount: sp.Expr, symbol: sp.Symbol, whole: list[sp.Expr]) -> sp.Expr:
    """*amount* with the roundings that *symbol* stands in left out; what they round is added to *whole*."""
    rounded = sorted(
        (e for e in amount.atoms(sp.ceiling, sp.floor) if e.has(symbol)), key=lambda e: (sp.count_ops(e), str(e))
    )
    made: dict[sp.Expr, sp.Expr] = {}
    for one in rounded:  # the inner ones first
        inside = put(one.args[0], made)
        if all(
            f.is_Symbol or f.is_Rational or f.is_Pow
            for t in sp.Add.make_args(sp.expand(inside))
            for f in sp.Mul.make_args(t)
        ):
            made[one] = inside
            if inside not in whole:
                whole.append(inside)
    return put(amount, made) if made else amount


def _winners(
    amount: sp.Expr, symbol: sp.Symbol, held: tuple[sp.Basic, ...] = ()
) -> Iterator[tuple[sp.Expr, tuple[sp.Basic, ...]]]:
    """*amount* once for each member that an undecided extreme of *symbol* may be, with the conditions that make it that.

    What follows from another condition is left out, and so are cases that cannot be.
    """
    inside = {e for total in amount.atoms(sp.Sum) for e in total.atoms(sp.Min, sp.Max)}
    undecided = [e for e in amount.atoms(sp.Min, sp.Max) - inside if e.has(symbol)]
    if not undecided:
        yield amount, held
        return
    extreme = _extreme_of(undecided, min)
    largest = extreme.func is sp.Max
    for member in extreme.args:
        pairs = [(o, member) if largest else (member, o) for o in extreme.args if o != member]
        conditions = held
        for small, big in pairs:
            conditions = _together(conditions, _no_more(small, big))
        if sp.false not in conditions:
            yield from _winners(put(amount, {extreme: member}), symbol, conditions)


def _together(held: tuple[sp.Basic, ...], more: sp.Basic) -> tuple[sp.Basic, ...]:
    """*held* and one condition more, what another one implies left out; false where two exclude each other."""
    if sp.false in (*held, more):
        return (sp.false,)
    if more == sp.true or any(_implies(c, more) for c in held):
        return held
    if any(floor_of(sp.expand(-_room(c) - _room(more))) >= 1 for c in held):
        return (sp.false,)
    return (*(c for c in held if not _implies(more, c)), more)


def _implies(one: sp.Basic, other: sp.Basic) -> bool:
    """Whether there is plainly at least as much room in *other* as in *one*."""
    return floor_of(sp.expand(_room(other) - _room(one))) >= 0


def _room(condition: sp.Basic) -> sp.Expr:
    """How much larger the larger side is."""
    return condition.rhs - condition.lhs


def _no_more(small: sp.Expr, big: sp.Expr) -> sp.Basic:
    """``small <= big``; of a difference and 0, each term on the side where it is positive: N_q <= N_k."""
    if 0 not in (small, big):
        return at_most(small, big)
    terms = sp.Add.make_args(big - small)
    taken = [t for t in terms if t.could_extract_minus_sign()]
    return at_most(-sp.Add(*taken), sp.Add(*(t for t in terms if t not in taken)))


def _extreme_of(several: Collection[sp.Expr], most: Callable[[Iterable[int]], int]) -> sp.Expr:
    """The one of the fewest operations, or the most; of several the first as they are written, which takes SymPy long."""
    operations = {e: sp.count_ops(e) for e in several}
    wanted = most(operations.values())
    found = [e for e, n in operations.items() if n == wanted]
    return found[0] if len(found) == 1 else min(found, key=str)

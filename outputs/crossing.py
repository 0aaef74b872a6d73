"""Where two schedules move alike: in their leading terms, as an equation; in their exact counts, as a length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import DomainError
from derive.exact import Number, value
from derive.growth.parameters import split
from derive.growth.posynomial import Facts, smooth
from derive.substitution import put
from derive.symbols import N_k, N_q
from derive.traffic import traffic
from outputs.bisection import last_that_holds

if TYPE_CHECKING:
    from outputs.account import Account

LONGEST = 2**24
"""No length beyond this is looked at for a crossing."""


@dataclass(frozen=True)
class Equality:
    """Leading terms in the length that are equal where ``left = right``; the first schedule moves less while left < right.

    Attributes:
        left, right: products with whole exponents and whole numbers.
    """

    left: sp.Expr
    right: sp.Expr


def equal_where(first: Account, second: Account, alike: Mapping[sp.Symbol, sp.Expr]) -> Equality | None:
    """Where the leading SM-side terms of two schedules, at tiles left open, are equal as the lengths grow.

    ``None`` where a count has no leading terms, or the two never meet.
    """
    tops = []
    for made in (first, second):
        top = _leading(traffic(made.derivation.schedule).total.amount, alike, made)
        if top is None:
            return None
        tops.append(top)
    ratio = sp.factor(tops[0] / tops[1])
    numerator, denominator = sp.fraction(ratio)
    return None if ratio.is_number else Equality(numerator, denominator)


def _leading(amount: sp.Expr, alike: Mapping[sp.Symbol, sp.Expr], made: Account) -> sp.Expr | None:
    """The term of the highest degree in the lengths."""
    amount = put(amount, dict(alike))
    lengths = {alike.get(N_q, N_q), alike.get(N_k, N_k)}
    loops = {x.tile: x.extent.xreplace(dict(alike)) for k in made.derivation.schedule.kernels for x in k.loops}
    facts = Facts.of((amount,), [(t, e) for t, e in loops.items() if t.is_Symbol], frozenset())
    try:
        terms = smooth(amount, facts)
    except DomainError:
        return None
    by_degree: dict[Fraction, list[sp.Expr]] = {}
    for term in terms:
        degree = sum((e for s, e in term.exponents.items() if s in lengths), Fraction(0))
        by_degree.setdefault(degree, []).append(term.coefficient * term.monomial)
    top = sp.Add(*by_degree[max(by_degree)])
    return None if any(split(t)[0] <= 0 for t in sp.Add.make_args(top)) else top


@dataclass(frozen=True)
class Changes:
    """How the order of two counts changes with the length.

    Attributes:
        first_leads: whether the first one is at most the second at length 1.
        lengths: the first length of each new order.
    """

    first_leads: bool
    lengths: tuple[int, ...]


def changes(
    first: Callable[[int], Number | None], second: Callable[[int], Number | None], longest: int = LONGEST
) -> Changes | None:
    """Where the order of two counts changes: looked for between powers of two, then halved down to the length.

    ``None`` where it never does, or a count has no value. A change and its reversal between two neighbouring powers of two
    are not seen.
    """

    def order(length: int) -> bool | None:
        a, b = first(length), second(length)
        return None if a is None or b is None else a <= b

    start = before = order(1)
    found: list[int] = []
    length = 2
    while before is not None and length <= longest:
        after = order(length)
        if after is None:
            return None
        if after != before:
            found.append(_first_change(order, before, length))
        before, length = after, 2 * length
    return Changes(start, tuple(found)) if found and start is not None else None


def _first_change(order: Callable[[int], bool | None], before: bool, length: int) -> int:
    return last_that_holds(lambda n: order(n) == before, length // 2, length) + 1


def count_at(made: Account, amount: sp.Expr, names: tuple[str, ...]) -> Callable[[int], Number | None]:
    """*amount* as a function of the lengths *names*, everything else at its value."""

    def counted(length: int) -> Number | None:
        return value(amount, {**made.values, **dict.fromkeys(names, length)})

    return counted

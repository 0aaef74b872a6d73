"""Minimum, maximum and rounding of extents, simplified only where that is plain.

SymPy's own constructors look for connections between all arguments by factoring, and its assumptions ask every question
they know; on the bounds of a mask that took most of the time of a derivation and found nothing more than this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp


def least(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    """The smaller of *a* and *b*, one of them where their difference has a known sign."""
    if a in _members(b, sp.Min) or b in _members(a, sp.Min):
        return b if a in _members(b, sp.Min) else a
    sign = _sign(a, b)
    return (a if sign < 0 else b) if sign else sp.Min(*_flat(a, sp.Min), *_flat(b, sp.Min), evaluate=False)


def most(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    """The larger of *a* and *b*, one of them where their difference has a known sign."""
    if a in _members(b, sp.Max) or b in _members(a, sp.Max):
        return b if a in _members(b, sp.Max) else a
    sign = _sign(a, b)
    return (a if sign > 0 else b) if sign else sp.Max(*_flat(a, sp.Max), *_flat(b, sp.Max), evaluate=False)


def greatest(amounts: Iterable[sp.Expr]) -> sp.Expr:
    """The largest of *amounts*, those left out that plainly are no larger than another; what all have stands before it."""
    terms = {a: a.as_coefficients_dict() for a in amounts}
    distinct = [a for a in terms if not any(b != a and _covers(terms[b], terms[a]) for b in terms)]
    found: list[sp.Expr] = []
    for a in distinct:
        signs = [_sign(a, other) for other in found]
        if -1 not in signs:
            found = [other for other, sign in zip(found, signs, strict=True) if sign != 1] + [a]
    if len(found) == 1:
        return found[0]
    shared = {term: min(terms[a].get(term, 0) for a in found) for term in terms[found[0]]}
    shared = {term: n for term, n in shared.items() if n > 0}
    apart = [sp.Add(*((n - shared.get(term, 0)) * term for term, n in terms[a].items())) for a in found]
    return sp.Add(*(n * term for term, n in shared.items()), sp.Max(*apart, evaluate=False))


def _covers(larger: Mapping[sp.Expr, sp.Expr], smaller: Mapping[sp.Expr, sp.Expr]) -> bool:
    """Whether a sum of positive terms is never below another one, term by term: equal ones first, then multiples by sizes."""
    if any(n < 0 for n in (*larger.values(), *smaller.values())):
        return False
    owed = {term: n - larger.get(term, 0) for term, n in smaller.items() if n > larger.get(term, 0)}
    held = {term: n - smaller.get(term, 0) for term, n in larger.items() if n > smaller.get(term, 0)}
    for term, n in owed.items():
        for other in [t for t in held if floor_of(t / term) >= 1]:
            paid = min(n, held[other])
            n, held[other] = n - paid, held[other] - paid
        if n > 0:
            return False
    return True


def _flat(e: sp.Expr, kind: Any) -> tuple[sp.Expr, ...]:
    """*e* itself, or what it takes the extreme of: max(a, max(b, c)) is max(a, b, c)."""
    return tuple(e.args) if isinstance(e, kind) else (e,)


def _members(e: sp.Expr, kind: Any) -> tuple[sp.Expr, ...]:
    """What *e* takes the extreme of, when it is of that *kind*: min(a, min(a, b)) is min(a, b)."""
    return tuple(e.args) if isinstance(e, kind) else ()


def _sign(a: sp.Expr, b: sp.Expr) -> int:
    """1 where *a* is never below *b*, -1 where it is never above, 0 where that is not plain."""
    terms = sp.Add.make_args(a - b)
    difference = sp.Add(*(term.expand(deep=False) for term in terms))  # deep would rebuild every minimum inside
    if floor_of(difference) >= 0:
        return 1
    return -1 if floor_of(-difference) >= 0 else 0


def floor_of(e: sp.Expr) -> int:
    """A whole number that *e* is never below, or -1 when none from 0 up is known: symbols are extents, at least 1 or 0."""
    if e.is_Number:
        return int(sp.floor(e))
    if e.is_Symbol:
        if not e.is_integer:
            return 0 if e.is_nonnegative else -1
        return 1 if e.is_positive else (0 if e.is_nonnegative else -1)
    if e.is_Add:
        number, rest = e.as_coeff_Add()
        known = [floor_of(term) for term in sp.Add.make_args(rest)]
        return -1 if min(known) < 0 else max(-1, int(sp.floor(number)) + sum(known))
    if e.is_Mul:
        known = [floor_of(factor) for factor in e.args]
        product = 1
        for each in known:
            product *= each
        return -1 if min(known) < 0 else product
    if e.is_Pow:
        return 0 if floor_of(e.base) >= 0 else -1
    if e.func in (sp.Min, sp.Max):
        return (min if e.func is sp.Min else max)(floor_of(x) for x in e.args)
    if e.func is sp.ceiling:
        inner = floor_of(e.args[0])
        return (
            max(inner, 1) if inner >= 0 and e.args[0].is_Mul and all(f.is_positive for f in e.args[0].args) else inner
        )
    return floor_of(e.args[0]) if e.func is sp.floor else -1


def down(x: sp.Expr) -> sp.Expr:
    """``floor(x)``; what is plainly whole stays as it is, and nothing else is asked."""
    return x if _is_whole(x) else sp.floor(x, evaluate=bool(x.is_Number))


def up(x: sp.Expr) -> sp.Expr:
    """``ceil(x)``, likewise; one part of several is 1."""
    if x.is_Pow and x.exp == -1 and x.base.is_Symbol and x.base.is_integer:
        return sp.Integer(1)
    return x if _is_whole(x) else sp.ceiling(x, evaluate=bool(x.is_Number))


def _is_whole(x: sp.Expr) -> bool:
    return bool(x.is_Integer or x.func in (sp.floor, sp.ceiling) or (x.is_Symbol and x.is_integer))

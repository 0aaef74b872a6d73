"""Parts of a closed form replaced, without SymPy's search for simplifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any

import sympy as sp

from derive.extremes import down, least, most, up

_COMBINE: Mapping[Any, Callable[..., Any]] = {sp.Min: least, sp.Max: most, sp.floor: down, sp.ceiling: up}


def put(expression: Any, replacements: Mapping[Any, Any]) -> Any:
    """*expression* with parts replaced, and minima and roundings simplified only where that is plain."""
    return _put(expression, dict(replacements))


def _put(expression: Any, met: dict[Any, Any]) -> Any:
    """The same; a part that stands in several places is looked at once."""
    found = met.get(expression)
    if found is None:
        found = met[expression] = _rebuilt(expression, met)
    return found


def _rebuilt(expression: Any, met: dict[Any, Any]) -> Any:
    parts = [_put(a, met) for a in expression.args]
    if all(new is old for new, old in zip(parts, expression.args, strict=True)):
        return expression
    combine = _COMBINE.get(expression.func)
    if combine is not None:
        return reduce(combine, parts) if len(parts) > 1 else combine(*parts)
    if isinstance(expression, (sp.core.relational.Relational, sp.Piecewise)):
        return expression.func(*parts, evaluate=False)
    if expression.is_Mul and any(part is sp.S.Zero for part in parts):
        return sp.S.Zero  # SymPy would ask of every other factor whether it is finite, at length
    return expression.func(*parts)


def outermost(total: sp.Sum) -> tuple[sp.Expr, sp.Symbol, sp.Expr, sp.Expr]:
    """(term, index, first, last) of a sum; SymPy writes a sum of sums as one with several indices, the innermost first."""
    term, *within, (index, first, last) = total.args
    return (sp.Sum(term, *within) if within else term), index, first, last


def free(expression: sp.Basic) -> set[sp.Symbol]:
    """The symbols of *expression* that no sum binds; SymPy's own ``free_symbols`` asks every part of a sum again."""
    return set(_free(expression))


@lru_cache(maxsize=2**13)
def _free(expression: sp.Basic) -> frozenset[sp.Symbol]:
    bound = {limits.args[0] for total in expression.atoms(sp.Sum) for limits in total.args[1:]}
    return symbols_in(expression) - bound


@lru_cache(maxsize=2**15)
def symbols_in(expression: sp.Basic) -> frozenset[sp.Symbol]:
    """All symbols of *expression*, those that a sum binds too; asked again for the same part, they are there."""
    if expression.is_Symbol:
        return frozenset((expression,))
    return frozenset().union(*map(symbols_in, expression.args))


def sealed(expression: sp.Expr, names: dict[sp.Expr, sp.Symbol]) -> sp.Expr:
    """*expression* with all but sums, products and powers under *names* of their own, to which new ones are added.

    SymPy's polynomials build every minimum inside again, and ask for its members' signs.
    """
    if expression.is_Atom:
        return expression
    if expression.is_Add or expression.is_Mul or (expression.is_Pow and expression.exp.is_Rational):
        return expression.func(*(sealed(part, names) for part in expression.args))
    return names.setdefault(expression, sp.Symbol(f"X_{len(names)}", positive=True))


def opened(expression: sp.Expr, names: Mapping[sp.Expr, sp.Symbol]) -> sp.Expr:
    """*expression* with what was sealed in place of its names."""
    return put(expression, {name: part for part, name in names.items()})


def expanded(expression: sp.Expr) -> sp.Expr:
    """*expression* as a sum of products, whatever is neither left as it is."""
    names: dict[sp.Expr, sp.Symbol] = {}
    return opened(sp.expand(sealed(expression, names)), names)


def multiplied_out(expression: sp.Expr) -> sp.Expr:
    """*expression* as a sum of products; minima, maxima and roundings stay as they are, a sum over a sum is two sums."""
    names: dict[sp.Expr, sp.Symbol] = {}
    found = sp.expand(sealed(expression, names))
    return found.xreplace({name: _within(part) for part, name in names.items()})


def factored(quotient: sp.Expr) -> sp.Expr:
    """*quotient* cancelled and in factors, minima and the like counting as symbols."""
    names: dict[sp.Expr, sp.Symbol] = {}
    return opened(sp.factor(sp.cancel(sealed(quotient, names))), names)


def _within(e: Any) -> Any:
    """What stands in a sum or in cases multiplied out."""
    if isinstance(e, sp.Sum):
        terms = sp.Add.make_args(multiplied_out(e.args[0]))
        return sp.Add(*(sp.Sum(term, *e.args[1:]) for term in terms))
    if isinstance(e, sp.Piecewise):
        return sp.Piecewise(*((multiplied_out(a), c) for a, c in e.args), evaluate=False)
    return e

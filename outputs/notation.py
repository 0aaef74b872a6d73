"""House notation in plain text: factors in one order (sizes, then d, then bytes), small <= big, no symbol twice.

``2*b*d*N*(ceiling(N/B_r) + 1)`` prints as ``2 N d b (1 + ceil(N/B_r))``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.met_blocks import Met
from derive.same import Same
from derive.steps import Steps
from derive.substitution import free, outermost
from derive.substitution import put as put
from derive.symbols import M, N
from outputs.spelling import rank

if TYPE_CHECKING:
    from derive.exact import Number
    from derive.growth import Growth
    from derive.growth.parameters import Condition

_FUNCTIONS: Mapping[Any, str] = {sp.ceiling: "ceil", sp.floor: "floor", sp.Min: "min", sp.Max: "max"}
RELATIONS: Mapping[Any, str] = {
    sp.LessThan: "<=",
    sp.StrictLessThan: "<",
    sp.GreaterThan: ">=",
    sp.StrictGreaterThan: ">",
    sp.Equality: "=",
    sp.Unequality: "!=",
}
_SUM, _PRODUCT, _POWER, _ATOM = range(4)


def text(expression: sp.Basic) -> str:
    """*expression* in house notation, ASCII.

    Raises:
        TypeError: a node that has no notation; it is never guessed.
    """
    return _print(sp.Integer(expression) if isinstance(expression, int) else expression)[0]


def tidy(expression: sp.Expr) -> sp.Expr:
    """*expression* with what all terms share taken out, in front of one bracket."""
    if not expression.is_Add:
        return expression
    terms = [term.as_coeff_Mul() for term in expression.args]
    powers = [rest.as_powers_dict() for _, rest in terms]
    bases = [b for b in powers[0] if b != 1 and all(p.get(b, sp.S.Zero).is_positive for p in powers)]
    shared = {b: min(p[b] for p in powers) for b in bases}
    number = sp.Rational(sp.igcd(*(c.p for c, _ in terms)), sp.ilcm(*(c.q for c, _ in terms)))
    common = sp.Mul(number, *(b**e for b, e in shared.items()))
    return expression if common == 1 else sp.Mul(common, sp.Add(*(t / common for t in expression.args)), evaluate=False)


@lru_cache(maxsize=256)
def cases(expression: sp.Expr) -> list[tuple[sp.Expr, sp.Basic]]:
    """The cases of *expression* with equal conditions told apart once: ``[(amount, condition), ..., (amount, True)]``."""
    choices = sorted(expression.atoms(sp.Piecewise), key=lambda p: (sp.count_ops(p), _word(p)))
    inner = next((p for p in choices if not any(a.has(sp.Piecewise) for a, _ in p.args)), None)
    if inner is None:
        return [(expression, sp.true)]
    condition = inner.args[0][1]
    holds, fails = {}, {}
    for choice in choices:
        if choice.args[0][1] == condition:
            holds[choice] = choice.args[0][0]
            rest = choice.args[1:]
            fails[choice] = rest[0][0] if rest[0][1] == sp.true else sp.Piecewise(*rest, evaluate=False)
    found = [(a, sp.And(condition, c)) for a, c in cases(put(expression, holds))]
    return [(a, c) for a, c in found + cases(put(expression, fails)) if c != sp.false]


def regime(found: Growth, shown: Callable[[Any], str] = text) -> str:
    """The conditions of a growth class, as one chain through M where they make one: ``d <= M <= N d``."""
    above = [shown(big) for small, big in found.conditions if small == M]
    below = [shown(small) for small, big in found.conditions if big == M]
    rest = [f"{shown(s)} <= {shown(b)}" for s, b in found.conditions if M not in (s, b)]
    chains = [f"{low} <= M" for low in below[1:]] + [f"M <= {high}" for high in above[1:]]
    middle = " <= ".join([*below[:1], "M", *above[:1]])
    return " and ".join(([middle] if below or above else []) + chains + rest) or "any M"


def linked(conditions: Iterable[Condition]) -> list[list[sp.Expr]]:
    """Conditions joined where one's big side is another's small one: [[d, M, N d]]."""
    left = list(conditions)
    found = []
    while left:
        links = list(left.pop(0))
        while (before := next((c for c in left if c[1] == links[0]), None)) is not None:
            left.remove(before)
            links.insert(0, before[0])
        while (after := next((c for c in left if c[0] == links[-1]), None)) is not None:
            left.remove(after)
            links.append(after[1])
        found.append(links)
    return found


def chain(
    conditions: Iterable[Condition], shown: Callable[[Any], str] = text, le: str = " <= ", also: str = " and "
) -> str:
    """Conditions as a paper writes them: ``d <= M <= N d``."""
    return also.join(le.join(map(shown, links)) for links in linked(conditions))


@lru_cache(maxsize=4096)
def _print(e: Any) -> tuple[str, int]:
    """The text of *e* and how tightly it binds."""
    if e.is_Symbol:
        return e.name, _ATOM
    if e.is_Integer:
        return (str(e), _ATOM) if e >= 0 else (str(e), _SUM)
    if e.is_Rational:
        return f"{e.p}/{e.q}", _PRODUCT
    if e.is_Add:
        return _add(e), _SUM
    if e.is_Mul:
        return _multiply(e), _PRODUCT
    if e.is_Pow:
        return _power(e)
    if e.func in _FUNCTIONS:
        return f"{_FUNCTIONS[e.func]}({', '.join(sorted((text(a) for a in e.args), key=len))})", _ATOM
    if e.func is sp.Sum:
        term, index, low, high = outermost(e)
        return f"sum({text(term)}, {index.name}={text(low)}..{text(high)})", _ATOM
    if isinstance(e, sp.Piecewise):
        parts = [f"{text(a)} if {text(c)}" for a, c in e.args[:-1]]
        return "(" + " else ".join([*parts, text(e.args[-1][0])]) + ")", _ATOM
    if e.func in RELATIONS:
        return _relation(e), _SUM
    if isinstance(e, sp.And):
        return " and ".join(sorted(f"({text(a)})" if isinstance(a, sp.Or) else text(a) for a in e.args)), _SUM
    if isinstance(e, sp.Or):
        return " or ".join(sorted(text(a) for a in e.args)), _SUM
    if e in (sp.true, sp.false):
        return str(bool(e)).lower(), _ATOM
    if isinstance(e, Steps):
        values = [str(value) for _, value in e.runs]
        shown = values if len(values) <= 4 else [*values[:3], "..."]
        return f"steps({text(e.args[0])}: {', '.join(shown)})", _ATOM
    if isinstance(e, Met):
        return f"{e.counts}({', '.join(map(text, e.shown))})", _ATOM
    if isinstance(e, Same):
        return f"[{text(e.args[0])} = {text(e.args[1])}]", _ATOM
    if e.func.__name__ == "Gcd":
        return f"gcd({text(e.args[0])}, {text(e.args[1])})", _ATOM
    raise TypeError(f"{e.func.__name__} has no house notation: {e}")


def _bracketed(e: Any, tighter_than: int) -> str:
    printed, binds = _print(e)
    return printed if binds > tighter_than else f"({printed})"


def _add(e: Any) -> str:
    printed = ""
    for term in in_order(e):
        negative = term.could_extract_minus_sign()
        body = _bracketed(-term, _SUM) if negative else _print(term)[0]
        sign = (" - " if negative else " + ") if printed else ("-" if negative else "")
        printed += sign + body
    return printed


def in_order(total: sp.Expr) -> list[sp.Expr]:
    """The terms of a sum: positive ones first, plain numbers before symbols, then by length."""

    def place(term: Any) -> tuple[bool, int, str]:
        return term.could_extract_minus_sign(), len(free(term)), _word(term)

    return sorted(total.args, key=place)


def fraction(product: sp.Expr) -> tuple[sp.Rational, list[sp.Expr], list[sp.Expr]]:
    """A product as its number, the factors above and the factors below the line, each list in house order."""
    number, rest = product.as_coeff_Mul()
    factors = sorted(sp.Mul.make_args(rest), key=_place)
    return number, [f for f in factors if not divides(f)], [1 / f for f in factors if divides(f)]


def divides(factor: sp.Expr) -> bool:
    """Whether *factor* stands below the line."""
    return bool(factor.is_Pow and factor.exp.is_number and factor.exp.is_negative)


def _place(factor: Any) -> tuple[int, int, str, int]:
    base = factor.base if factor.is_Pow else factor
    return (0, *rank(base)) if base.is_Symbol else (1 + base.is_Add, 0, _word(base), 0)


@lru_cache(maxsize=4096)
def _word(e: Any) -> str:
    """What *e* is sorted by: SymPy's text, but of a sum the house's; SymPy first asks a sum for its value, for seconds."""
    try:
        return _print(e)[0] if e.has(sp.Sum) else str(e)
    except TypeError:  # a sum of an equation's entries, which the house's text does not spell
        return str(e)


def _multiply(e: Any) -> str:
    number, above, below = fraction(e)
    sign = "-" if number < 0 else ""
    top = [str(abs(number.p))] if abs(number.p) != 1 or not above else []
    top += [_factor(f) for f in above]
    bottom = ([str(number.q)] if number.q != 1 else []) + [_factor(f) for f in below]
    if not bottom:
        return sign + " ".join(top)
    alone = len(bottom) == 1 and (not below or bool(below[0].is_Add) or _print(below[0])[1] > _PRODUCT)
    return f"{sign}{' '.join(top)}/{bottom[0]}" if alone else f"{sign}{' '.join(top)}/({' '.join(bottom)})"


def _factor(e: Any) -> str:
    printed, binds = _print(e)
    return printed if binds > _SUM and printed[0] != "-" else f"({printed})"


def _power(e: Any) -> tuple[str, int]:
    if divides(e):
        return f"1/{_bracketed(1 / e, _PRODUCT)}", _PRODUCT
    if e.exp == sp.Rational(1, 2):
        return f"sqrt({text(e.base)})", _ATOM
    return f"{_bracketed(e.base, _POWER)}^{_bracketed(e.exp, _POWER)}", _POWER


def _relation(e: Any) -> str:
    """Small <= big, whichever way round it was built."""
    left, right = e.args
    operator = RELATIONS[e.func]
    if operator in (">=", ">"):
        left, right, operator = right, left, operator.replace(">", "<")
    return f"{text(left)} {operator} {text(right)}"


def with_one_length(values: Mapping[str, Number], tied: bool) -> dict[str, Number]:
    """*values* by name, and N where there is one length: of queries and keys, or of tokens where keys have no other."""
    length = values.get("N_k", values.get("N_q"))
    return {**values, N.name: length} if tied and length is not None else dict(values)


def as_asked(numbers: Mapping[str, Number], tied: bool) -> dict[str, Number]:
    """*numbers* of a question in order, both lengths as the one that was given, N, before all others."""
    known = with_one_length(numbers, tied)
    if N.name not in known:
        return known
    return {N.name: known[N.name], **{n: v for n, v in numbers.items() if n not in ("N_q", "N_k")}}

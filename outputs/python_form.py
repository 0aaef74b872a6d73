"""Closed forms as Python expressions that stay exact: ``ceil(N/B_r)`` is ``_ceil(N, B_r)``, a quotient is a ``Fraction``.

No float appears, so nothing rounds and nothing overflows; a division of integers inside a ceiling never leaves the integers.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp

from derive.exact import Gcd
from derive.met_blocks import Met
from derive.same import Same
from derive.steps import Steps
from derive.substitution import outermost
from outputs.notation import RELATIONS, fraction, in_order

_SIGNS = {"=": "=="}
_PRECEDENCE = {"or": 0, "and": 1, "compare": 2, "sum": 3, "product": 4, "negative": 5, "power": 6, "atom": 7}
Printed = tuple[str, int]
HELPERS = '''\
def _floor(a: Exact, b: Exact) -> int:
    """The whole part of a/b, by whole numbers alone."""
    return a // b


def _ceil(a: Exact, b: Exact) -> int:
    """a/b rounded up, by whole numbers alone."""
    return -(-a // b)


def _min(*numbers: Exact) -> Exact:
    """The smallest."""
    return min(numbers)


def _max(*numbers: Exact) -> Exact:
    """The largest."""
    return max(numbers)


def _sum(numbers: Iterable[Exact]) -> Exact:
    """All of them, added."""
    total: Exact = 0
    for number in numbers:
        total += number
    return total


def _span(first: Exact, last: Exact) -> range:
    """The whole numbers from *first* to *last*, both included; none when there are none."""
    return range(int(first), int(last) + 1)


def _gcd(a: Exact, b: Exact) -> int:
    """The greatest common divisor of two whole numbers."""
    return gcd(int(a), int(b))


def _steps(x: Exact, starts: tuple[int, ...], values: tuple[int, ...]) -> int:
    """The value that belongs to the last start that is at most x; the first one before."""
    found = values[0]
    for start, value in zip(starts, values, strict=True):
        if start <= x:
            found = value
    return found
'''
"""What the expressions call, for a module whose ``Exact`` is ``int | Fraction``."""
LOOKUP = '''\
def _united(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in the order of their starts, those that touch or overlap made one."""
    found: list[tuple[int, int]] = []
    for first, past in spans:
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], past))
        elif first < past:
            found.append((first, past))
    return found


def _met(
    what: str, rows: int, keys: int, row_tile: int, key_tile: int, row_block: int, key_block: int
) -> int:
    """Of the tile pairs that meet a listed block how many there are, or the rows, keys or pairs in them."""
    total, i, trips, last = 0, 0, -(-rows // row_tile), len(_BLOCKS) - 1
    while i < trips:
        top, bottom = i * row_tile // row_block, (min((i + 1) * row_tile, rows) - 1) // row_block
        after = min(-(-(top + 1) * row_block // row_tile), (bottom + 1) * row_block // row_tile, trips)
        after = max(after, i + 1)
        if i < trips - 1:
            after = min(after, trips - 1)
        seen = {key for row in _BLOCKS[min(top, last) : min(bottom, last) + 1] for key in row}
        across = 0
        for first, past in _united(
            (a * key_block // key_tile, -(-min(z * key_block, keys) // key_tile))
            for a, z in _united((key, key + 1) for key in sorted(seen))
        ):
            across += min(past * key_tile, keys) - first * key_tile if what in ("keys", "pairs") else past - first
        total += across * (min(after * row_tile, rows) - i * row_tile if what in ("rows", "pairs") else after - i)
        i = after
    return total
'''
"""What a count of listed blocks calls besides; it reads the list from ``_BLOCKS``."""


def python_form(expression: sp.Basic) -> str:
    """*expression* as Python; it may call ``Fraction`` and what ``HELPERS`` defines.

    Raises:
        TypeError: a node that has no exact form.
    """
    return _print(expression)[0]


def identifier(name: str) -> str:
    """The Python name of a symbol."""
    return f"{name}_" if keyword.iskeyword(name) else name.replace("'", "_")


def _print(e: Any) -> Printed:
    if e.is_Symbol:
        return identifier(e.name), _PRECEDENCE["atom"]
    if e.is_Integer:
        return str(e), _PRECEDENCE["atom" if e >= 0 else "negative"]
    if e.is_Rational:
        return f"Fraction({e.p}, {e.q})", _PRECEDENCE["atom"]
    rule = _RULES.get(e.func)
    if rule is None:
        raise TypeError(f"{e.func.__name__} has no exact Python form: {e}")
    return rule(e)


def _within(e: Any, least: str) -> str:
    printed, binds = _print(e)
    return printed if binds >= _PRECEDENCE[least] else f"({printed})"


def _add(e: Any) -> Printed:
    printed = ""
    for term in in_order(e):
        negative = term.could_extract_minus_sign()
        body = _within(-term if negative else term, "product")
        sign = (" - " if negative else " + ") if printed else ("-" if negative else "")
        printed += sign + body
    return printed, _PRECEDENCE["sum"]


def _product(number: int, factors: list[Any]) -> str:
    parts = ([str(number)] if number != 1 or not factors else []) + [_within(f, "power") for f in factors]
    return " * ".join(parts)


def _quotient(e: Any) -> tuple[str, str]:
    """*e* as numerator and denominator; the denominator is empty when there is none."""
    if e.is_Rational:
        return str(e.p), "" if e.q == 1 else str(e.q)
    if not (e.is_Mul or e.is_Pow):
        return _print(e)[0], ""
    number, above, below = fraction(e)
    top = _product(int(number.p), above)
    return top, _product(int(number.q), below) if below or number.q != 1 else ""


def _mul(e: Any) -> Printed:
    top, bottom = _quotient(e)
    if bottom:
        return f"Fraction({top}, {bottom})", _PRECEDENCE["atom"]
    return top, _PRECEDENCE["negative" if top.startswith("-") else "product"]


def _power(e: Any) -> Printed:
    if not e.exp.is_Integer:
        raise TypeError(f"{e} has no exact Python form: the power {e.exp} is not whole")
    if e.exp < 0:
        return f"Fraction(1, {_print(sp.Pow(e.base, -e.exp, evaluate=False))[0]})", _PRECEDENCE["atom"]
    if e.exp == 1:
        return _print(e.base)
    return f"{_within(e.base, 'atom')}**{e.exp}", _PRECEDENCE["power"]


def _rounded(name: str) -> Callable[[Any], Printed]:
    def printed(e: Any) -> Printed:
        top, bottom = _quotient(e.args[0])
        return f"{name}({top}, {bottom or '1'})", _PRECEDENCE["atom"]

    return printed


def _call(name: str) -> Callable[[Any], Printed]:
    return lambda e: (f"{name}({', '.join(_print(a)[0] for a in e.args)})", _PRECEDENCE["atom"])


def _sum(e: Any) -> Printed:
    term, index, low, high = outermost(e)
    span = f"_span({_print(low)[0]}, {_print(high)[0]})"
    return f"_sum({_print(term)[0]} for {identifier(index.name)} in {span})", _PRECEDENCE["atom"]


def _steps(e: Any) -> Printed:
    lists = (", ".join(map(str, part)) for part in e.args[1:])
    return f"_steps({_print(e.args[0])[0]}, {', '.join(f'({part},)' for part in lists)})", _PRECEDENCE["atom"]


def _met(e: Any) -> Printed:
    sizes = ", ".join(_print(size)[0] for size in e.sizes)
    return f'_met("{e.counts}", {sizes})', _PRECEDENCE["atom"]


def _same(e: Any) -> Printed:
    return f"({_within(e.args[0], 'sum')} == {_within(e.args[1], 'sum')})", _PRECEDENCE["atom"]


def _cases(e: Any) -> Printed:
    parts = [f"{_print(a)[0]} if {_print(c)[0]} else" for a, c in e.args[:-1]]
    if e.args[-1][1] != sp.true:
        raise TypeError(f"{e} has no value where no case holds")
    return f"({' '.join(parts)} {_print(e.args[-1][0])[0]})", _PRECEDENCE["atom"]


def _relation(e: Any) -> Printed:
    sign = RELATIONS[e.func]
    return f"{_within(e.lhs, 'sum')} {_SIGNS.get(sign, sign)} {_within(e.rhs, 'sum')}", _PRECEDENCE["compare"]


_RULES: Mapping[Any, Callable[[Any], Printed]] = {
    sp.Add: _add,
    sp.Mul: _mul,
    sp.Pow: _power,
    sp.floor: _rounded("_floor"),
    sp.ceiling: _rounded("_ceil"),
    sp.Min: _call("_min"),
    sp.Max: _call("_max"),
    Gcd: _call("_gcd"),
    Steps: _steps,
    Met: _met,
    Same: _same,
    sp.Mod: lambda e: (f"({_within(e.args[0], 'power')} % {_within(e.args[1], 'power')})", _PRECEDENCE["atom"]),
    sp.Sum: _sum,
    sp.Piecewise: _cases,
    sp.And: lambda e: (" and ".join(_within(a, "compare") for a in e.args), _PRECEDENCE["and"]),
    sp.Or: lambda e: (" or ".join(_within(a, "and") for a in e.args), _PRECEDENCE["or"]),
    **dict.fromkeys(RELATIONS, _relation),
    type(sp.true): lambda _: ("True", _PRECEDENCE["atom"]),
    type(sp.false): lambda _: ("False", _PRECEDENCE["atom"]),
}

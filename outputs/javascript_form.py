"""Closed forms as JavaScript that stays exact: whole numbers are BigInt, anything else a reduced fraction of two of them.

No product of sizes passes 2^53 unnoticed and no ceiling rounds, since no floating-point number appears. A sum is printed as a
loop. ``ceil(N/B_r)`` is ``ceil(v.N, v.B_r)``, where ``v`` holds the values and the functions are those of ``arithmetic.js``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from derive.exact import Gcd
from derive.met_blocks import Met, Rows
from derive.same import Same
from derive.steps import Steps
from derive.substitution import outermost
from outputs.notation import RELATIONS, divides

_COMPARED = {"<=": ("atMost", False), "<": ("below", False), ">=": ("atMost", True), ">": ("below", True)}
_SHORTEST = 12
"""Characters of the shortest form that is worth a part of its own."""


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
"""Names of properties that need no quotes."""


def javascript_form(expression: sp.Basic) -> str:
    """*expression* as JavaScript in ``v``; it may call what ``arithmetic.js`` defines.

    Raises:
        TypeError: a node that has no exact form.
    """
    return _Printer().form(expression)


def javascript_program(forms: Mapping[str, sp.Basic]) -> str:
    """*forms* as two constants: ``forms``, a function of ``v`` or a part by name, and ``parts``, what occurs more than once.

    A part is computed when it is first asked for, so that no branch that does not hold is ever evaluated.

    Raises:
        TypeError: a node that has no exact form.
    """
    printer = _Printer({form: place for place, form in enumerate(_repeated(forms.values()))})
    parts = [f"v => {printer.whole(form)}" for form in printer.shared]
    groups: dict[str, list[str]] = {}
    for name, form in forms.items():
        cut = max(map(name.rfind, "|.")) + 1  # what many names begin with is written once
        key = name[cut:] if _PLAIN.fullmatch(name, cut) else json.dumps(name[cut:])
        groups.setdefault(name[:cut], []).append(f"{key}: {printer.named(form)}")
    lines = [f"{json.dumps(group)}: {{{', '.join(entries)}}}" for group, entries in groups.items()]
    return "const parts = [\n{}\n];\nconst forms = flat({{\n{}\n}});\n".format(",\n".join(parts), ",\n".join(lines))


def _repeated(forms: Iterable[sp.Basic]) -> list[sp.Basic]:
    """Forms that occur more than once in *forms* and have one value wherever they stand: without the index of a sum."""
    plain = _Printer()
    seen: dict[sp.Basic, int] = {}

    def visit(form: Any, bound: frozenset[str]) -> None:
        if not form.args or isinstance(form, sp.Tuple):
            return
        if not plain.names(form) & bound and len(plain.form(form, bound)) >= _SHORTEST:
            seen[form] = seen.get(form, 0) + 1
            if seen[form] > 1:
                return
        if isinstance(form, sp.Sum):
            term, index, low, high = outermost(form)
            visit(low, bound)
            visit(high, bound)
            visit(term, bound | {index.name})
        elif isinstance(form, sp.Piecewise):
            for amount, condition in form.args:
                visit(amount, bound)
                visit(condition, bound)
        else:
            whole = form.args[0] if form.func in _ROUNDED and form.args[0].is_Mul else form  # rounded as a quotient
            for part in plain.ordered(whole, bound):
                visit(part, bound)

    for form in forms:
        visit(form, frozenset())
    return [form for form, times in seen.items() if times > 1]


@dataclass(frozen=True)
class _Printer:
    """Prints forms, each once; those that have a place are called by it.

    Attributes:
        shared: the place of each part.
    """

    shared: Mapping[sp.Basic, int] = field(default_factory=dict)
    _printed: dict[tuple[Any, frozenset[str]], str] = field(default_factory=dict)
    _names: dict[Any, frozenset[str]] = field(default_factory=dict)

    def form(self, e: Any, bound: frozenset[str] = frozenset()) -> str:
        """*e* in the scope of the indices *bound*: as the part that it is, or whole."""
        place = self.shared.get(e)
        return self.whole(e, bound) if place is None or self.names(e) & bound else f"v({place})"

    def named(self, e: Any) -> str:
        """*e* as an entry of ``forms``: a function, or the place of the part that it is."""
        place = self.shared.get(e)
        return f"v => {self.form(e)}" if place is None else str(place)

    def whole(self, e: Any, bound: frozenset[str] = frozenset()) -> str:
        """*e* itself printed, its parts by name."""
        key = (e, bound & self.names(e))
        if key not in self._printed:
            self._printed[key] = self._print(e, bound)
        return self._printed[key]

    def names(self, e: Any) -> frozenset[str]:
        """The symbols that *e* depends on; a sum binds its own."""
        if e not in self._names:
            if e.is_Symbol:
                found = frozenset({e.name})
            elif isinstance(e, sp.Sum):
                term, index, low, high = outermost(e)
                found = (self.names(term) - {index.name}) | self.names(low) | self.names(high)
            else:
                found = frozenset().union(*map(self.names, e.args))
            self._names[e] = found
        return self._names[e]

    def ordered(self, e: Any, bound: frozenset[str]) -> list[Any]:
        """The arguments of *e*; by their text where their order is SymPy's own, which may differ between runs."""
        if isinstance(e, Steps):
            return [e.args[0]]
        if isinstance(e, Met):
            return list(e.sizes)
        if isinstance(e, (sp.Add, sp.Mul, sp.Min, sp.Max, sp.And, sp.Or)):
            return sorted(e.args, key=lambda part: (len(text := self.whole(part, bound)), text))
        return list(e.args)

    def call(self, function: str, e: Any, bound: frozenset[str]) -> str:
        """A function of the arguments of *e*."""
        return f"{function}({', '.join(self.form(part, bound) for part in self.ordered(e, bound))})"

    def quotient(self, e: Any, bound: frozenset[str]) -> tuple[str, str]:
        """*e* above and below the line."""
        if e.is_Rational:
            return f"{e.p}n", f"{e.q}n"
        if not e.is_Mul or (e in self.shared and not self.names(e) & bound):
            return self.form(e, bound), "1n"
        return self._split(e, bound)

    def _split(self, e: Any, bound: frozenset[str]) -> tuple[str, str]:
        """A product above and below the line."""
        above, below, number = [], [], sp.Integer(1)
        for factor in self.ordered(e, bound):
            if factor.is_Rational:
                number *= factor
            elif divides(factor) and factor.exp.is_Integer:
                below.append(self._to_power(factor.base, -int(factor.exp), bound))
            else:
                above.append(self.form(factor, bound))
        return _product(int(number.p), above), _product(int(number.q), below)

    def _to_power(self, base: Any, n: int, bound: frozenset[str]) -> str:
        return self.form(base, bound) if n == 1 else f"power({self.form(base, bound)}, {n})"

    def _print(self, e: Any, bound: frozenset[str]) -> str:
        if e.is_Symbol:
            return f"${e.name}" if e.name in bound else f"v.{name(e.name)}"
        if e.is_Rational:
            return f"{e.p}n" if e.q == 1 else f"over({e.p}n, {e.q}n)"
        if e.is_Mul:
            top, bottom = self._split(e, bound)
            return top if bottom == "1n" else f"over({top}, {bottom})"
        if e.is_Pow:
            return self._power(e, bound)
        if e.func in (sp.floor, sp.ceiling):
            return f"{_ROUNDED[e.func]}({', '.join(self.quotient(e.args[0], bound))})"
        if isinstance(e, sp.Sum):
            term, index, low, high = outermost(e)
            shown = self.form(term, bound | {index.name})
            return f"sum({self.form(low, bound)}, {self.form(high, bound)}, ${index.name} => {shown})"
        if isinstance(e, sp.Piecewise):
            return self._cases(e, bound)
        if isinstance(e, Steps):
            lists = (", ".join(f"{n}n" for n in part) for part in e.args[1:])
            return f"steps({self.form(e.args[0], bound)}, {', '.join(f'[{part}]' for part in lists)})"
        if isinstance(e, Met):
            sizes = ", ".join(self.form(size, bound) for size in e.sizes)
            return f'met("{e.counts}", {sizes}, {_blocks(e.kept)})'
        if e.func in RELATIONS:
            return self._relation(e, bound)
        if isinstance(e, (sp.And, sp.Or)):
            sign = " && " if isinstance(e, sp.And) else " || "
            return f"({sign.join(self.form(part, bound) for part in self.ordered(e, bound))})"
        if isinstance(e, sp.Not):
            return f"!{self.form(e.args[0], bound)}"
        if e in (sp.true, sp.false):
            return str(bool(e)).lower()
        if e.func not in _CALLED:
            raise TypeError(f"{e.func.__name__} has no exact JavaScript form: {e}")
        return self.call(_CALLED[e.func], e, bound)

    def _power(self, e: Any, bound: frozenset[str]) -> str:
        if not e.exp.is_Integer:
            raise TypeError(f"{e} has no exact JavaScript form: the power {e.exp} is not whole")
        powered = self._to_power(e.base, abs(int(e.exp)), bound)
        return powered if e.exp > 0 else f"over(1n, {powered})"

    def _cases(self, e: Any, bound: frozenset[str]) -> str:
        if e.args[-1][1] != sp.true:
            raise TypeError(f"{e} has no value where no case holds")
        tried = "".join(f"{self.form(c, bound)} ? {self.form(a, bound)} : " for a, c in e.args[:-1])
        return f"({tried}{self.form(e.args[-1][0], bound)})"

    def _relation(self, e: Any, bound: frozenset[str]) -> str:
        sign, (left, right) = RELATIONS[e.func], (self.form(side, bound) for side in e.args)
        if sign in ("=", "!="):
            return f"{'!' if sign == '!=' else ''}equal({left}, {right})"
        function, turned = _COMPARED[sign]
        return f"{function}({right}, {left})" if turned else f"{function}({left}, {right})"


def _product(number: int, factors: list[str]) -> str:
    printed = ([f"{number}n"] if number != 1 or not factors else []) + factors
    return printed[0] if len(printed) == 1 else f"mul({', '.join(printed)})"


def _blocks(kept: Rows) -> str:
    return f"[{','.join('[' + ','.join(map(str, sorted(row))) + ']' for row in kept)}]"


def name(symbol: str) -> str:
    """The JavaScript property of a symbol."""
    return symbol.replace("'", "_")


_ROUNDED: Mapping[Any, str] = {sp.floor: "floor", sp.ceiling: "ceil"}
_CALLED: Mapping[Any, str] = {sp.Add: "add", sp.Min: "min", sp.Max: "max", sp.Mod: "mod", Gcd: "gcd", Same: "same"}

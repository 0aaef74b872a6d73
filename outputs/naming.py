"""Long closed forms cut into named parts, so that each fits a line: ``T_r = ceil(N/B_r)``, ``X_1 = ...``.

Nothing is simplified: putting the definitions back in gives the form that was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.logic.boolalg import Boolean

from derive.met_blocks import Met
from derive.steps import Steps
from derive.substitution import free, outermost
from outputs.notation import text

_CUT_ANYWHERE = (sp.Add, sp.Mul, sp.Min, sp.Max)
"""What may be cut between its arguments."""
_SHORTEST = 5
"""Characters of text below which a name saves nothing."""


@dataclass(frozen=True)
class Named:
    """Closed forms and the names they use.

    Attributes:
        forms: the closed forms, in the order they were given.
        definitions: ``(name, what it stands for)``; a definition uses only names that are defined before it.
    """

    forms: tuple[sp.Basic, ...]
    definitions: tuple[tuple[sp.Symbol, sp.Expr], ...]

    @property
    def written_out(self) -> tuple[sp.Basic, ...]:
        """The closed forms without names."""
        meaning: dict[sp.Basic, sp.Basic] = {}
        for name, part in self.definitions:
            meaning[name] = _put_back(part, meaning)
        return tuple(_put_back(form, meaning) for form in self.forms)


def named(forms: Sequence[sp.Basic], longest: int) -> Named:
    """*forms* in parts of at most *longest* characters of text each, as far as symbols allow.

    A part that uses the index of a sum around it has a small letter: it has another value for each index.

    Args:
        forms: closed forms, conditions among them.
        longest: characters of a form's text.
    """
    scissors = _Scissors(longest, {s.name for form in forms for s in free(form)})
    cut = tuple(scissors.cut(form, frozenset()) if len(text(form)) > longest else form for form in forms)
    return Named(cut, tuple((name, part) for part, name in scissors.names.items()))


class _Scissors:
    """Cuts forms from the inside out; equal parts get one name."""

    def __init__(self, longest: int, taken: set[str]) -> None:
        self.names: dict[sp.Basic, sp.Symbol] = {}
        self._longest = longest
        self._taken = taken
        self._varies_with: dict[sp.Basic, frozenset[sp.Basic]] = {}

    def cut(self, form: sp.Basic, bound: frozenset[sp.Basic]) -> sp.Basic:
        """*form*, short enough."""
        if not form.args or isinstance(form, (Steps, Met)) or len(text(form)) <= self._longest // 3:
            return form
        args = list(form.args)
        if isinstance(form, sp.Sum):
            term, index, low, high = outermost(form)
            body = self._short(self.cut(term, bound | {index}), bound | {index}, self._longest // 2)
            ends = (self._short(self.cut(e, bound), bound, self._longest // 4) for e in (low, high))
            return sp.Sum(body, (index, *ends))
        if isinstance(form, sp.Piecewise):
            pairs = [(self.cut(a, bound), c if c == sp.true else self.cut(c, bound)) for a, c in args]
            return self._shortened(form, [a for pair in pairs for a in pair], bound)
        return self._shortened(form, [self.cut(a, bound) for a in args], bound)

    def _short(self, part: sp.Basic, bound: frozenset[sp.Basic], longest: int) -> sp.Basic:
        return self._name(part, bound) if len(text(part)) > longest else part

    def _shortened(self, form: sp.Basic, args: list[sp.Basic], bound: frozenset[sp.Basic]) -> sp.Basic:
        """*form* of *args*, of which the longest get names until it fits."""
        found = _made(form, args)
        while len(text(found)) > self._longest:
            many = isinstance(form, _CUT_ANYWHERE) and len(args) > 3
            least = self._longest // 3 if many else _SHORTEST  # of many short terms several become one part
            worth = [n for n, a in enumerate(args) if not _is_condition(a) and len(text(a)) >= least]
            if worth:
                place = max(worth, key=lambda n: len(text(args[n])))
                args[place] = self._name(args[place], bound)
            elif many:
                fitting = range(len(args) // 2, 2, -1)
                some = next((n for n in fitting if len(text(_made(form, args[:n]))) <= self._longest), 2)
                args = [*args[some:], self._name(_made(form, args[:some]), bound)]
            else:
                break
            found = _made(form, args)
        return found

    def _name(self, part: sp.Basic, bound: frozenset[sp.Basic]) -> sp.Symbol:
        if part not in self.names:
            indices = self._indices(part) & bound
            self.names[part] = self._new(part, varies=bool(indices))
            self._varies_with[self.names[part]] = indices
        return self.names[part]

    def _indices(self, part: sp.Basic) -> frozenset[sp.Basic]:
        """The symbols and indices that *part* has another value for, names seen through; a sum binds its own."""
        if part.is_Symbol:
            return self._varies_with.get(part, frozenset({part}))
        if isinstance(part, sp.Sum):
            term, index, *ends = outermost(part)
            return (self._indices(term) - {index}).union(*map(self._indices, ends))
        return frozenset().union(*map(self._indices, part.args))

    def _new(self, part: sp.Basic, *, varies: bool) -> sp.Symbol:
        """T with the tile's subscript for a number of tiles, as the papers write it; else the next X, or x where it varies."""
        name = ""
        if part.func is sp.ceiling and not varies:
            below = [1 / f for f in sp.Mul.make_args(part.args[0]) if f.is_Pow and f.exp == -1 and f.base.is_Symbol]
            if len(below) == 1 and below[0].name.startswith("B_"):
                name = f"T_{below[0].name[2:]}"
        number = 1
        while not name or name in self._taken:
            name = f"{'x' if varies else 'X'}_{number}"
            number += 1
        self._taken.add(name)
        return sp.Symbol(name, real=True)


def _made(form: sp.Basic, args: list[sp.Basic]) -> sp.Basic:
    """A node like *form*, of *args*, without evaluation."""
    if isinstance(form, sp.Piecewise):
        return sp.Piecewise(*zip(args[::2], args[1::2], strict=True), evaluate=False)
    if args == list(form.args):
        return form
    return form.func(*args, evaluate=False)


def _is_condition(part: sp.Basic) -> bool:
    return isinstance(part, Boolean) and not isinstance(part, sp.Expr)  # a SymPy symbol is both


def _put_back(form: sp.Basic, meaning: dict[sp.Basic, sp.Basic]) -> sp.Basic:
    """*form* with names replaced by what they stand for."""
    if form in meaning:
        return meaning[form]
    if not form.args:
        return form
    args = [_put_back(a, meaning) for a in form.args]
    if isinstance(form, (sp.Sum, sp.Tuple)) or form.func.__name__ == "ExprCondPair":
        return form.func(*args)
    return form if args == list(form.args) else form.func(*args, evaluate=False)

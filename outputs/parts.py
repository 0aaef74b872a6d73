"""Amounts whose terms have cases of their own, as one sum and a table: ``4 N d b + Y_1 + Y_2``, and what each ``Y`` is when.

Thirteen terms that each may or may not fit the cache have 8192 cases together, which say nothing more than thirteen pairs do.
Terms that the same conditions decide are one part; equal parts have one name. A sum over tiles that a form repeats is named
too, ``X_1``: the passes of six tensors over the tiles that a mask leaves are one number six times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import sympy as sp

from derive.substitution import expanded
from outputs.notation import put, text, tidy

MOST_CONDITIONS = 2
"""Conditions up to which all cases of an amount are listed."""
_WORTH_A_NAME = 24
"""Characters of a repeated sum from which on it is named."""


def conditions(amount: sp.Basic) -> set[sp.Basic]:
    """The conditions that tell the cases of *amount* apart."""
    return {c for choice in amount.atoms(sp.Piecewise) for _, c in choice.args if c != sp.true}


class Parts:
    """The parts of several amounts that are printed together.

    Attributes:
        names: by part, a ``Piecewise`` or a repeated sum, the symbol that stands for it.
    """

    def __init__(self) -> None:
        self.names: dict[sp.Expr, sp.Symbol] = {}

    def of(self, amount: sp.Expr) -> sp.Expr:
        """*amount* in the names of its parts; as it is where its cases are few."""
        return amount if len(conditions(amount)) <= MOST_CONDITIONS else self._named(amount)

    def shared(self, amount: sp.Expr) -> sp.Expr:
        """*amount* with a name for each sum over tiles, and what is added to it, that stands in it twice or has a name."""
        often = Counter(_sums_in(amount))
        repeated = {e for e, n in often.items() if e in self.names or (n > 1 and len(text(e)) >= _WORTH_A_NAME)}
        return expanded(self._with_names(amount, repeated)) if repeated else amount

    def _with_names(self, amount: sp.Expr, repeated: set[sp.Expr]) -> sp.Expr:
        if amount in repeated:
            return self._name_of(amount, "X")
        if isinstance(amount, sp.Sum | sp.Piecewise) or not amount.has(sp.Sum):
            return amount
        return amount.func(*(self._with_names(a, repeated) for a in amount.args))

    def since(self, many: int) -> list[tuple[sp.Symbol, sp.Expr]]:
        """Parts and their names, behind the first *many*."""
        return [(name, part) for part, name in self.names.items()][many:]

    def written_out(self, amount: sp.Expr) -> sp.Expr:
        """*amount* with its parts in the place of their names."""
        for part, name in reversed(self.names.items()):
            amount = put(amount, {name: part})
        return amount

    def _named(self, amount: sp.Expr) -> sp.Expr:
        plain, by_conditions = sp.Integer(0), dict[tuple[sp.Basic, ...], list[sp.Expr]]()
        for factor, term in _terms(amount, sp.Integer(1)):
            if not isinstance(term, sp.Piecewise):
                plain += factor * self._inside(term)
                continue
            told = tuple(condition for _, condition in term.args)
            before = by_conditions.setdefault(told, [sp.Integer(0)] * len(told))
            by_conditions[told] = [b + factor * branch for b, (branch, _) in zip(before, term.args, strict=True)]
        made = [_choice(tuple(map(expanded, branches)), told) for told, branches in by_conditions.items()]
        return sp.Add(plain, *(self._name(part) if isinstance(part, sp.Piecewise) else part for part in made))

    def _name(self, part: sp.Piecewise) -> sp.Symbol:
        if len(conditions(part)) > MOST_CONDITIONS:  # cases within its cases
            part = sp.Piecewise(*((self._named(branch), c) for branch, c in part.args), evaluate=False)
        return self._name_of(part, "Y")

    def _name_of(self, part: sp.Expr, letter: str) -> sp.Symbol:
        """The name of *part*: the next one of *letter* where it has none yet."""
        number = sum(name.name.startswith(f"{letter}_") for name in self.names.values()) + 1
        return self.names.setdefault(part, sp.Symbol(f"{letter}_{number}", nonnegative=True))

    def _inside(self, term: sp.Expr) -> sp.Expr:
        """*term*, which is no sum of cases, with a name for each choice within it."""
        if isinstance(term, sp.Piecewise):
            return self._name(term)
        if not term.has(sp.Piecewise):
            return term
        return term.func(*map(self._inside, term.args))


def _choice(branches: tuple[sp.Expr, ...], told: tuple[sp.Basic, ...]) -> sp.Expr:
    """The branches in their cases, the last of them joined as far as they are one amount."""
    while len(branches) > 1 and branches[-2] == branches[-1]:
        branches, told = branches[:-1], (*told[:-2], told[-1])
    if len(branches) == 1 and told[0] == sp.true:
        return tidy(branches[0])
    return sp.Piecewise(*((tidy(a), c) for a, c in zip(branches, told, strict=True)), evaluate=False)


def _sums_in(amount: sp.Basic) -> Iterator[sp.Expr]:
    """Every sum over tiles in *amount*, and the nearest amount that adds to one, as often as they stand there."""
    if isinstance(amount, sp.Piecewise) or not amount.has(sp.Sum):
        return
    if isinstance(amount, sp.Sum) or (amount.is_Add and any(map(_is_multiple_of_a_sum, amount.args))):
        yield amount
    if not isinstance(amount, sp.Sum):
        for part in amount.args:
            yield from _sums_in(part)


def _is_multiple_of_a_sum(term: sp.Expr) -> bool:
    return any(isinstance(factor, sp.Sum) for factor in sp.Mul.make_args(term))


def _terms(amount: sp.Expr, factor: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """*amount* as a sum of terms, each with what it is multiplied by, as far as choices are not inside something else."""
    if amount.is_Add:
        for term in amount.args:
            yield from _terms(term, factor)
        return
    with_cases = [a for a in amount.args if a.has(sp.Piecewise)] if amount.is_Mul else []
    if len(with_cases) == 1 and (with_cases[0].is_Add or isinstance(with_cases[0], sp.Piecewise)):
        rest = sp.Mul(*(a for a in amount.args if a is not with_cases[0]))
        yield from _terms(with_cases[0], factor * rest)
    else:
        yield factor, amount

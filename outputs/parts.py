"""Amounts whose terms have cases of their own, as one sum and a table: ``4 N d b + Y_1 + Y_2``, and what each ``Y`` is when.

Thirteen terms that each may or may not fit the cache have 8192 cases together, which say nothing more than thirteen pairs do.
Terms that the same conditions decide are one part; equal parts have one name.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from outputs.notation import put, tidy

MOST_CONDITIONS = 2
"""Conditions up to which all cases of an amount are listed."""


def conditions(amount: sp.Basic) -> set[sp.Basic]:
    """The conditions that tell the cases of *amount* apart."""
    return {c for choice in amount.atoms(sp.Piecewise) for _, c in choice.args if c != sp.true}


class Parts:
    """The parts of several amounts that are printed together.

    Attributes:
        names: by part, a ``Piecewise``, the symbol that stands for it.
    """

    def __init__(self) -> None:
        self.names: dict[sp.Expr, sp.Symbol] = {}

    def of(self, amount: sp.Expr) -> sp.Expr:
        """*amount* in the names of its parts; as it is where its cases are few."""
        return amount if len(conditions(amount)) <= MOST_CONDITIONS else self._named(amount)

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
        made = [
            sp.Piecewise(
                *((tidy(sp.expand(branch)), c) for branch, c in zip(branches, told, strict=True)), evaluate=False
            )
            for told, branches in by_conditions.items()
        ]
        return sp.Add(plain, *(self._name(part) for part in made if isinstance(part, sp.Piecewise)))

    def _name(self, part: sp.Piecewise) -> sp.Symbol:
        if len(conditions(part)) > MOST_CONDITIONS:  # cases within its cases
            part = sp.Piecewise(*((self._named(branch), c) for branch, c in part.args), evaluate=False)
        return self.names.setdefault(part, sp.Symbol(f"Y_{len(self.names) + 1}", nonnegative=True))

    def _inside(self, term: sp.Expr) -> sp.Expr:
        """*term*, which is no sum of cases, with a name for each choice within it."""
        if isinstance(term, sp.Piecewise):
            return self._name(term)
        if not term.has(sp.Piecewise):
            return term
        return term.func(*map(self._inside, term.args))


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

"""How wide the page is, and how long formulas are set in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from outputs.formula import latex
from outputs.naming import named
from outputs.notation import cases, put, tidy
from outputs.paper.tex import aligned, display

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation


@dataclass(frozen=True, slots=True)
class Layout:
    r"""What a column holds.

    Attributes:
        name: what a person types.
        formula: characters of text of the longest formula.
        meaning: width of a column of words in a table, in ``\linewidth``.
        closed_forms: whether tables of numbers have a column of closed forms.
    """

    name: str
    formula: int
    meaning: float
    closed_forms: bool


WIDE = Layout("wide", 56, 0.5, True)
NARROW = Layout("narrow", 30, 0.45, False)
LAYOUTS = {layout.name: layout for layout in (WIDE, NARROW)}


@dataclass(frozen=True)
class Claim:
    """A quantity as a paper states it.

    Attributes:
        symbol: its LaTeX.
        forms: ``(amount, condition)`` of each case, cut into parts that fit.
        left_out: how many cases are not among them, because they do not hold at the numbers given.
    """

    symbol: str
    forms: tuple[tuple[sp.Expr, sp.Basic], ...]
    left_out: int = 0

    @property
    def names(self) -> set[sp.Basic]:
        """The symbols it is written in."""
        return {s for pair in self.forms for part in pair for s in part.free_symbols}


@dataclass(frozen=True)
class Claims:
    """Quantities that are cut together, so that a name means one thing in a proposition and its proof.

    Attributes:
        stated: what the proposition claims.
        counted: what the proof counts.
        definitions: the parts, each after those it uses.
    """

    stated: tuple[Claim, ...]
    counted: tuple[Claim, ...]
    definitions: tuple[tuple[sp.Symbol, sp.Expr], ...]

    @property
    def defined_in_statement(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The parts that the proposition uses."""
        needed = {s for claim in self.stated for s in claim.names}
        kept = []
        for name, part in reversed(self.definitions):
            if name in needed:
                kept.append((name, part))
                needed |= part.free_symbols
        return tuple(reversed(kept))

    @property
    def defined_in_proof(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The parts that the proof alone uses."""
        return tuple(d for d in self.definitions if d not in self.defined_in_statement)


MOST_CASES = 4
"""Cases beyond which only the one that holds is printed, where numbers say which."""


def claims(
    explanation: Explanation,
    account: Account,
    stated: Mapping[str, sp.Expr],
    counted: Mapping[str, sp.Expr],
    layout: Layout,
) -> Claims:
    """Amounts by symbol, in cases, all cut with one set of names."""
    found = {
        s: [(tidy(a), c) for a, c in cases(put(x, explanation.shown))] for s, x in (*stated.items(), *counted.items())
    }
    left_out = dict.fromkeys(found, 0)
    for symbol, amount in stated.items():
        holding = _holding(account, amount) if len(found[symbol]) > MOST_CASES else None
        if holding is not None:
            left_out[symbol] = len(found[symbol]) - 1
            found[symbol] = [found[symbol][holding]]
    cut = named([part for form in found.values() for pair in form for part in pair], layout.formula)
    parts = iter(cut.forms)
    made = [Claim(s, tuple((next(parts), next(parts)) for _ in form), left_out[s]) for s, form in found.items()]
    return Claims(tuple(made[: len(stated)]), tuple(made[len(stated) :]), cut.definitions)


def _holding(account: Account, amount: sp.Expr) -> int | None:
    """Which case holds at the numbers given; ``None`` while they do not decide."""
    for n, (_, condition) in enumerate(cases(amount)):
        found = 1 if condition == sp.true else account.number(condition)
        if found != 0:
            return n if found == 1 else None
    return None


def displayed(claim: Claim) -> list[str]:
    """``symbol = amount`` for each case, its condition in words before it."""
    lines: list[str] = []
    if claim.left_out:
        lines.append(f"of {claim.left_out + 1} cases the one that holds at the numbers above,")
    for n, (amount, condition) in enumerate(claim.forms):
        if condition != sp.true:
            lines.append(rf"{'while' if n == 0 else 'else while'}")
            lines += aligned(_conjuncts(condition))
        elif n:
            lines.append("otherwise")
        lines += display(f"{claim.symbol} = {latex(amount)}")
    return lines


def _conjuncts(condition: sp.Basic) -> list[str]:
    """What must hold together, one a line."""
    parts = sorted(latex(part) for part in sp.And.make_args(condition))
    return [rf"{part} \text{{ and}}" for part in parts[:-1]] + [f"{parts[-1]},"]


def defined(definitions: Sequence[tuple[sp.Symbol, sp.Expr]]) -> list[str]:
    """The parts that formulas above were cut into."""
    if not definitions:
        return []
    lines = ["where"]
    for name, part in definitions:
        varies = name.name[0] == "x"
        lines += display(f"{latex(name)} = {latex(part)}" + (r" \quad \text{(each index)}" if varies else ""))
    return lines

"""How wide the page is, and how long formulas are set in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import sympy as sp

from derive.substitution import free
from outputs.formula import latex
from outputs.naming import named
from outputs.notation import cases, put, tidy
from outputs.paper.tex import aligned, display
from outputs.parts import Parts

if TYPE_CHECKING:
    from outputs.explanation import Explanation


Key = TypeVar("Key")
Cases = tuple[tuple[sp.Expr, sp.Basic], ...]
"""``(amount, condition)`` of each case, the last of them true."""


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
        of: the quantity that it is a part of, with cases of its own; empty for a whole one.
    """

    symbol: str
    forms: Cases
    of: str = ""

    @property
    def names(self) -> set[sp.Basic]:
        """The symbols it is written in."""
        return {s for pair in self.forms for part in pair for s in free(part)}


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
                needed |= free(part)
        return tuple(reversed(kept))

    @property
    def defined_in_proof(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
        """The parts that the proof alone uses."""
        return tuple(d for d in self.definitions if d not in self.defined_in_statement)


def claims(
    explanation: Explanation,
    stated: Mapping[str, sp.Expr],
    counted: Mapping[str, sp.Expr],
    layout: Layout,
) -> Claims:
    """Amounts by symbol, in cases, all cut with one set of names."""
    parts = Parts()
    wholes: dict[str, sp.Expr] = {}
    of: dict[str, str] = {}
    for symbol, amount in (*stated.items(), *counted.items()):
        known = len(parts.names)
        wholes[symbol] = parts.of(put(amount, explanation.shown))
        for name, part in parts.since(known):  # each behind the first that it is a part of
            wholes[latex(name)], of[latex(name)] = part, symbol
    forms, definitions = in_cases(wholes, layout)
    made = [Claim(symbol, form, of.get(symbol, "")) for symbol, form in forms.items()]
    first = next((n for n, claim in enumerate(made) if claim.symbol in counted), len(made))
    return Claims(tuple(made[:first]), tuple(made[first:]), definitions)


def in_cases(
    amounts: Mapping[Key, sp.Expr], layout: Layout
) -> tuple[dict[Key, Cases], tuple[tuple[sp.Symbol, sp.Expr], ...]]:
    """*amounts* as ``(amount, condition)`` of each case, cut into parts that fit, and what these parts stand for."""
    forms = {key: [(tidy(a), c) for a, c in cases(amount)] for key, amount in amounts.items()}
    cut = named([part for form in forms.values() for pair in form for part in pair], layout.formula)
    pieces = iter(cut.forms)
    return {key: tuple((next(pieces), next(pieces)) for _ in form) for key, form in forms.items()}, cut.definitions


def displayed(claim: Claim) -> list[str]:
    """``symbol = amount`` for each case, its condition in words before it."""
    lines: list[str] = []
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

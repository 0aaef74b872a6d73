"""Every formula of an answer with what it says, one after another, as LaTeX or as MathML: to be taken into another document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sympy as sp

from derive.graph import Graph
from outputs.formula import latex
from outputs.latex import new_equations, statement_latex, step_latex
from outputs.mathml import mathml
from outputs.notation import put
from outputs.paper.layout import WIDE, claims
from outputs.paper.statement import amounts, said, status

if TYPE_CHECKING:
    from outputs.explanation import Explanation

FORMATS = ("text", "latex", "mathml")
"""What a formula may be printed as."""


def closed_forms(answer: Explanation) -> Iterator[tuple[str, str]]:
    """``(what it says, its LaTeX)`` of every count of every schedule, a case a formula, then of the names in them."""
    for account in answer.accounts:
        made = claims(answer, amounts(account), {}, WIDE)
        for claim in made.stated:
            for n, (amount, condition) in enumerate(claim.forms):
                words = f"{account.name}: {said(claim)} ({status(claim)})"
                if condition != sp.true:
                    words += ", while the next holds"
                elif n:
                    words += ", otherwise"
                yield words, f"{claim.symbol} = {latex(amount)}"
                if condition != sp.true:
                    yield f"{account.name}: condition", latex(condition)
        for name, part in made.definitions:
            yield f"{account.name}: where", f"{latex(name)} = {latex(part)}"


def derivation(answer: Explanation) -> Iterator[tuple[str, str]]:
    """The same of every step: its rule in general, its condition, and what it made."""
    for account in answer.accounts:
        for equation in new_equations(Graph((), ()), account.derivation.start):
            yield f"{account.name}: start", equation
        for n, step in enumerate(account.derivation.steps, 1):
            words = f"{account.name}, step {n}: {step.rule}"
            if (general := statement_latex(step.rule)) is not None:
                yield f"{words}, in general", general
            if step.condition != sp.true:
                yield f"{words}, while", latex(put(step.condition, answer.shown))
            if made := step_latex(step):
                yield words, made


def printed(found: Iterator[tuple[str, str]], as_: str) -> str:
    """*found* with the words of each as a comment on the line above it.

    Args:
        found: words and LaTeX.
        as_: ``latex`` or ``mathml``.
    """
    if as_ == "latex":
        return "\n".join(f"% {words}\n{written}" for words, written in found)
    return "\n".join(
        f"<!-- {words.replace('--', '- -')} -->\n{mathml(written, display=True)}" for words, written in found
    )

"""A closed form as an answer prints it: the case that holds at its numbers, or all cases, and a note that says which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.relational import Relational

from outputs.layout import Section, Table
from outputs.notation import cases, put, text, tidy
from outputs.parts import conditions

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation
    from outputs.parts import Parts


def form(answer: Explanation, amount: sp.Expr, parts: Parts) -> str:
    """A closed form in house notation; where it has cases, the one that holds at the given numbers comes alone.

    Many cases that no number decides are cut into *parts*, which the caller prints.
    """
    shown = put(amount, answer.shown)

    def written(amount: sp.Expr) -> str:
        return text(tidy(parts.shared(amount)))

    if not amount.has(sp.Piecewise):
        return written(shown)
    holds = _holding(answer.accounts[-1], amount)
    if holds is not None:
        return f"{written(put(holds, answer.shown))} *"
    found = cases(parts.of(shown))
    if len(found) == 1:
        return written(found[0][0])
    return "; ".join(
        f"{written(a)}{'' if c == sp.true else ' while ' + text(c)}" + ("" if c != sp.true else " otherwise")
        for a, c in found
    )


def where(parts: Parts, behind: int = 0) -> list[Section]:
    """What each of *parts* is in each of its cases; those that stand *behind* so many."""
    table = Table(("", "is", ""))
    for name, part in parts.since(behind):
        for n, (amount, condition) in enumerate(cases(part)):
            told = f"while {text(condition)}" if condition != sp.true else "otherwise" if n else ""
            table.add("" if n else name.name, text(tidy(amount)), told)
    return [Section("where", table)] if table.rows else []


def _holding(account: Account, amount: sp.Expr) -> sp.Expr | None:
    """*amount* in the case that holds at the given numbers; ``None`` where they do not tell."""
    while choices := amount.atoms(sp.Piecewise):
        inner = [p for p in choices if not any(a.has(sp.Piecewise) for a, _ in p.args)]
        chosen = {}
        for choice in inner:
            for branch, condition in choice.args:
                told = 1 if condition == sp.true else account.number(condition)
                if told is None:
                    return None
                if told:
                    chosen[choice] = branch
                    break
        amount = put(amount, chosen)
    return amount


def case_note(answer: Explanation, account: Account) -> str | None:
    """Which case of the DRAM bytes holds at the given numbers."""
    amount = account.dram.total.amount
    if not amount.has(sp.Piecewise) or not account.is_numeric:
        return None
    told = conditions(amount)
    if len(told) > 3:  # each tensor has cases of its own, and their combinations say nothing more
        return _each_condition(answer, account, {r for c in told for r in c.atoms(Relational)})
    found = cases(amount)
    failed: list[str] = []
    for _, condition in found:
        shown = text(put(condition, answer.shown))
        if condition == sp.true:
            return f"* {account.name}: since this fails: {'; '.join(failed)}"
        if account.number(condition) == 1:
            return f"* {account.name}: while {shown}"
        failed.append(shown)
    return None


def _each_condition(answer: Explanation, account: Account, conditions: set[sp.Basic]) -> str:
    """Which of *conditions* hold at the given numbers, and which fail, each once."""
    told: dict[bool, set[str]] = {True: set(), False: set()}
    for condition in conditions:
        told[account.number(condition) == 1].add(text(put(condition, answer.shown)))
    words = {True: "while", False: "since these fail:"}
    parts = [f"{words[holds]} {'; '.join(sorted(shown, key=len))}" for holds, shown in told.items() if shown]
    return f"* {account.name}: {', and '.join(parts)}"

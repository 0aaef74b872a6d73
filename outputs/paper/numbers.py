"""The numbers, as booktabs tables: every one a quantity that parses back, with the exact value beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from derive.flops import Pipe
from outputs.formula import latex
from outputs.notation import cases, put, text, tidy
from outputs.paper.layout import Layout
from outputs.paper.tex import breakable, escaped, exactly, quantity, table
from outputs.quantities import decimal, seconds, significant, size

if TYPE_CHECKING:
    import sympy as sp

    from outputs.account import Account
    from outputs.explanation import Explanation

_LONGEST = 28
"""Characters of a closed form that still fits a cell."""


def numbers(explanation: Explanation, layout: Layout) -> list[str]:
    """Bytes, work and times of every schedule; nothing while a symbol has no value."""
    accounts = [a for a in explanation.accounts if a.is_numeric]
    if not accounts:
        return []
    rows = [_row(explanation, layout, "compulsory", accounts[0], accounts[0].compulsory.total.amount)]
    rows += [_row(explanation, layout, "SM-side", a, a.sm.total.amount) for a in accounts]
    rows += [_row(explanation, layout, "HBM", a, a.dram.total.amount) for a in accounts]
    closed = ("closed form",) if layout.closed_forms else ()
    lines = [r"\DeriveHeading{Bytes}"]
    lines += table("@{}ll" + "l" * len(closed) + "rr@{}", ("bytes", "schedule", *closed, "rounded", "exact"), rows)
    work = [
        (label, escaped(a.name), quantity(decimal(n, unit)), exactly(n, unit))
        for a in accounts
        for label, amount, unit in (
            ("matmul", a.executed[Pipe.MMA], "FLOP"),
            ("exp", a.executed[Pipe.SFU], "op"),
            *((("converted", a.converted, "op"),) if a.converted != 0 else ()),
        )
        if (n := a.number(amount)) is not None
    ]
    lines += [r"\DeriveHeading{Work that is run}", *_work(layout, work)]
    return lines + (_times(explanation, accounts) if explanation.machine is not None else [])


def _work(layout: Layout, rows: list[tuple[str, str, str, str]]) -> list[str]:
    return table("@{}llrr@{}", ("work", "schedule", "rounded", "exact"), rows, tight=not layout.closed_forms)


def _row(explanation: Explanation, layout: Layout, label: str, account: Account, amount: sp.Expr) -> list[str]:
    number = account.exact(amount)
    closed = [_closed(explanation, amount)] if layout.closed_forms else []
    name = "any" if label == "compulsory" else escaped(account.name)
    whole = account.whole(amount) or 0
    return [label, name, *closed, quantity(size(number)), exactly(whole, "B")]


def _closed(explanation: Explanation, amount: sp.Expr) -> str:
    """A closed form without cases that fits a cell, else a pointer to where it stands."""
    found = cases(put(amount, explanation.shown))
    form = tidy(found[0][0])
    if len(found) == 1 and len(text(form)) <= _LONGEST:
        return f"${latex(form)}$"
    return "as proved"


def _times(explanation: Explanation, accounts: list[Account]) -> list[str]:
    """The least time at peak rates, which pipe or level binds, and where the rates come from."""
    machine = explanation.machine
    assert machine is not None
    rows = []
    for a in accounts:
        if a.seconds is None or a.intensity is None:
            continue
        rows.append(
            [escaped(a.name), quantity(seconds(a.seconds)), escaped(a.bound or "?"), significant(Fraction(a.intensity))]
        )
    if not rows:
        return []
    lines = [rf"\DeriveHeading{{Least times on {escaped(machine.id)}}}"]
    lines += table("@{}lrlr@{}", ("schedule", "at least", "bound by", "FLOP/B"), rows)
    lines.append(
        r"\par\noindent These are lower bounds at peak rates, all overlapped. Constants are cited, not derived:"
    )
    used = [c for name in ("sm_count", "l2_size", "shared_mem_per_sm_max") if (c := machine.get(name)) is not None]
    said = [
        f"{escaped(c.name)} = {escaped(c.as_printed)} ({escaped(c.kind)}; {breakable(c.source)}; {c.date})"
        for c in used
    ]
    rates = [("mma", "FLOP/s"), ("dram", "B/s"), ("l2", "B/s")]
    for level, unit in rates:
        rate = accounts[0].rate(level)  # type: ignore[arg-type]
        if rate is not None:
            said.append(
                f"{level} at {quantity(decimal(rate.value, unit))} ({breakable(rate.how)}; {escaped(rate.kind)})"
            )
    return [*lines, "; ".join(said) + "."]

"""Notation, assumptions and the proposition: what is claimed, and of what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from derive.flops import Pipe
from derive.substitution import free
from derive.symbols import M
from outputs.formula import latex
from outputs.notation import put, regime, with_one_length
from outputs.paper.layout import Claim, Claims, Layout, defined, displayed
from outputs.paper.sources import cited
from outputs.paper.tex import cell, escaped, numbered, quantity, table
from outputs.quantities import significant, size
from outputs.spelling import in_reading_order, spelling

if TYPE_CHECKING:
    from derive.exact import Number
    from outputs.account import Account
    from outputs.explanation import Explanation


def amounts(account: Account) -> dict[str, sp.Expr]:
    """What a proposition states, by symbol: compulsory, SM-side and HBM bytes, matrix FLOP, and bytes on chip."""
    found = {
        r"D_{\min}": account.compulsory.total.amount,
        r"D_{\mathrm{SM}}": account.sm.total.amount,
        r"D_{\mathrm{HBM}}": account.dram.total.amount,
        "F": account.executed[Pipe.MMA],
    }
    if account.converted != 0:
        found[r"N_{\mathrm{conv}}"] = account.converted
    return found if account.footprint is None else {**found, r"A_{\mathrm{CTA}}": account.footprint}


SAYS = {
    r"D_{\min}": "bytes that any schedule moves: each input once, each output once",
    r"D_{\mathrm{SM}}": "bytes between the cache and the SMs, re-reads included",
    r"D_{\mathrm{HBM}}": "bytes between HBM and the cache",
    "F": "FLOP of the matrix products that are run",
    r"N_{\mathrm{conv}}": "elements of a narrow type, each converted when it is brought into an SM",
    r"A_{\mathrm{CTA}}": "bytes of shared memory that a CTA holds",
}
"""What each of them counts."""


def said(claim: Claim) -> str:
    """What *claim* counts, in words."""
    return f"{SAYS[claim.of]}, the parts are" if claim.of else SAYS[claim.symbol]


def status(claim: Claim) -> str:
    """Whether *claim* is derived or modelled."""
    return "modelled" if "HBM" in (claim.of or claim.symbol) else "derived"


def notation(explanation: Explanation, layout: Layout) -> list[str]:
    """The symbols used, with their meaning and, where they have one, their value."""
    used: set[sp.Symbol] = set()
    values: dict[str, Number] = {}
    for account in explanation.accounts:
        for amount in amounts(account).values():
            used |= free(put(amount, explanation.shown))
        if account.growth(explanation.alike) is not None:
            used.add(M)
        values |= {name: value for name, value in account.values.items() if name not in values}
    values = with_one_length(values, explanation.tied)
    rows = []
    for symbol in in_reading_order(s for s in used if spelling(s.name).says):
        spelt = spelling(symbol.name)
        value = values.get(symbol.name)
        words = escaped(spelt.says) + (f" [{spelt.unit}]" if spelt.unit else "")
        shown = "" if value is None else _value(value, spelt.unit)
        rows.append((f"${spelt.latex}$", cell(words, rf"{layout.meaning}\linewidth"), shown))
    counts = {symbol for account in explanation.accounts for symbol in amounts(account)}
    rows += [
        (f"${s}$", cell(escaped(says), rf"{layout.meaning}\linewidth"), "") for s, says in SAYS.items() if s in counts
    ]
    return table("@{}llr@{}", ("symbol", "meaning", "value"), rows)


def _value(value: object, unit: str) -> str:
    if unit == "bytes":
        return quantity(size(value))  # type: ignore[arg-type]
    return str(value) if isinstance(value, int) else significant(value)  # type: ignore[arg-type]


def assumptions(explanation: Explanation) -> list[str]:
    """What the counts rest on; the derivation's own conditions are in its steps."""
    request = explanation.request
    mask = explanation.accounts[0].derivation.start.mask
    said = [
        f"Forward pass of {escaped(request.variant.name)}, {escaped(request.variant.says)} {cited(request.variant.reference)};"
        f" {escaped(request.variant.seen_by(mask))}."
    ]
    said += [
        f"${latex(small)}$ divides ${latex(put(large, explanation.alike))}$."
        for small, large in request.variant.divides
    ]
    said += [
        "Every tile is loaded whole and aligned; the last tile of an index may be smaller. An operator that is not tiled"
        " counts each operand once.",
        "HBM bytes are modelled, not measured: the cache is LRU, CTAs start in waves in grid order and advance in step,"
        " and a written line goes back to HBM once.",
        "Values are real numbers: rewriting keeps them exactly, rounding is not bounded here.",
    ]
    return numbered(said, "A")


def kept_on_chip(account: Account) -> list[str]:
    """Tensors that cross no memory: defined and read within one kernel."""
    crossing = set(account.sm.by_tensor)
    return [name for name in account.derivation.schedule.graph.tensors if name not in crossing]


def proposition(explanation: Explanation, account: Account, made: Claims, label: str) -> list[str]:
    """What *account* costs, in closed form, with the regime of each case."""
    name = f"{account.name} on {explanation.request.variant.name}"
    lines = [rf"\begin{{\DeriveTheoremEnv}}[{escaped(name)}]", rf"\label{{{label}}}"]
    lines.append("Under the assumptions above the schedule has the following costs.")
    before = ""
    for claim in made.stated:
        if claim.of and claim.of == before:
            lines.append("and")
        elif claim.of:
            lines.append(rf"where of ${claim.of}$, {escaped(said(claim))} ({status(claim)}),")
        else:
            lines.append(rf"${claim.symbol}$, {escaped(said(claim))} ({status(claim)}):")
        before = claim.of
        lines += displayed(claim)
    lines += defined(made.defined_in_statement)
    if account.is_exact is False:
        lines.append(
            r"At these numbers $D_{\mathrm{HBM}}$ is an upper bound: near its capacity an LRU cache may keep part."
        )
    lines += growth_clause(explanation, account)
    return [*lines, r"\end{\DeriveTheoremEnv}"]


def growth_clause(explanation: Explanation, account: Account) -> list[str]:
    """The growth class with its regime, in elements; nothing where it is not derived."""
    found = account.growth(explanation.alike)
    if found is None:
        return []
    chain = regime(found, latex).replace("<=", r"\le").replace(" and ", "$ and $")
    within = f"${chain}$" if found.conditions else "any $M$"
    total = " + ".join(latex(m) for m in found.monomials)
    return [
        "Over all tiles that fit $M$ elements, the elements that cross into the SMs grow as (derived)",
        rf"\[ \Theta\left({total}\right) \]",
        f"for {within}; this is a growth class and no byte count.",
    ]


def tile_values(account: Account) -> str:
    """The tiles of a schedule, as a phrase; empty where none are set."""
    tiles = [n for n in ("B_r", "B_c") if n in account.values]
    return ", ".join(rf"${spelling(n).latex} = {account.values[n]}$" for n in tiles)

"""The proof: each rewriting step with its rule, reason and reference, then the count of what the last schedule moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from derive.graph import Graph
from derive.schedule import Schedule
from derive.substitution import multiplied_out
from outputs.formula import latex
from outputs.latex import new_equations, rescaled_by, statement_sides
from outputs.notation import put
from outputs.paper.layout import Claims, defined, displayed
from outputs.paper.sources import cited
from outputs.paper.statement import kept_on_chip
from outputs.paper.tex import aligned, escaped

if TYPE_CHECKING:
    from derive.rewrite import Step
    from derive.schedule import Kernel
    from outputs.account import Account
    from outputs.explanation import Explanation


def proof(explanation: Explanation, account: Account, made: Claims, label: str) -> list[str]:
    """The proof of one proposition."""
    lines = [rf"\begin{{proof}}[Proof of \DeriveTheoremName~\ref{{{label}}}]"]
    lines.append("The variant computes")
    lines += aligned(new_equations(Graph((), ()), account.derivation.start))
    lines.append("Each step below keeps every value and is legal for the reason given.")
    for n, step in enumerate(account.derivation.steps, 1):
        lines += _step(explanation, n, step)
    lines += _count(explanation, account, made)
    return [*lines, r"\end{proof}"]


def _step(explanation: Explanation, n: int, step: Step) -> list[str]:
    rule = step.rule
    reasons = "; ".join(step.reasons)
    because = f" Legal, because {escaped(reasons)}." if reasons else ""
    lines = [
        rf"\DeriveStep{{Step {n}, {escaped(str(rule))}}} {_sentence(rule.claim)}.{because}"
        rf" {cited(rule.reference)}."
    ]
    if step.condition != sp.true:
        lines.append(rf"The claim holds while ${latex(put(step.condition, explanation.shown))}$.")
    if isinstance(step.before, Graph) and isinstance(step.after, Graph):
        fresh = new_equations(step.before, step.after)
        if (sides := statement_sides(rule)) is not None:
            lines += ["In general", *aligned([sides[0], f"= {sides[1]},"]), "and here"]
        lines += aligned(fresh) if fresh else []
        lines += [f"each sum rescaled whenever ${m}$ rises." for m in rescaled_by(step.before, step.after)]
    elif isinstance(step.before, Schedule) and isinstance(step.after, Schedule):
        before = {(k.einsums, k.loops) for k in step.before.kernels}
        lines += [f"{_nest(k)}." for k in step.after.kernels if (k.einsums, k.loops) not in before]
    return lines


def _sentence(words: str) -> str:
    """Words as the start of a sentence; a symbol keeps its case."""
    first = words.split(" ", 1)[0]
    return escaped(words if len(first) == 1 and first != "a" else words[0].upper() + words[1:])


def _nest(kernel: Kernel) -> str:
    """A kernel's loops in words."""
    loops = [
        ("over the grid " if loop.grid else "for ")
        + r" \times ".join(i.name for i in loop.indices).join("$$")
        + f" by ${latex(loop.tile)}$"
        for loop in kernel.loops
    ]
    return f"Kernel {escaped(kernel.name)}: {', '.join(loops) if loops else 'whole operands'}"


def counted(account: Account) -> dict[str, sp.Expr]:
    """Elements read and written of each tensor on the SM side, and the bytes that must stay in the cache."""
    graph = account.derivation.schedule.graph
    found: dict[str, sp.Expr] = {}
    for name, move in account.sm.by_tensor.items():
        width = graph.tensors[name].width
        for letter, amount in (("R", move.read), ("W", move.write)):
            if amount != 0:
                found[rf"{letter}_{{\mathrm{{{name.replace('_', '')}}}}}"] = multiplied_out(amount / width)
    return found if account.sharing is None else {**found, LIVE: account.sharing[1].live_bytes}


LIVE = "L"
"""Bytes of the slices that are live together."""


def _count(explanation: Explanation, account: Account, made: Claims) -> list[str]:
    """Elements of each tensor that cross into the SMs; their bytes add up to the SM-side count."""
    graph = account.derivation.schedule.graph
    lines = [
        r"\DeriveStep{Count} A tensor is moved once for each trip of every loop that does not index it and"
        " stands outside the innermost loop that does; a loop of one trip moves nothing again, and a partial sum that leaves"
        " is read back. With $R$ for elements read and $W$ for elements written,"
    ]
    for claim in made.counted:
        if claim.symbol == LIVE:
            names = escaped(" and ".join(t.name for t in account.sharing[1].tensors)) if account.sharing else ""
            lines += [rf"Re-reads of {names} reach HBM only when the slices that are live together,", *displayed(claim)]
            lines.append(
                r"bytes, do not fit the cache: LRU keeps a line while fewer than $C_{\mathrm{L2}}$ other bytes are touched"
                " between two uses."
            )
        else:
            lines += displayed(claim)
    lines += ["Here", *defined(made.defined_in_proof)[1:]] if made.defined_in_proof else []
    if inside := kept_on_chip(account):
        lines.append(
            f"The tensors {escaped(', '.join(inside))} are defined and read within one kernel and cross no memory."
        )
    widths = sorted({latex(put(graph.tensors[name].width, explanation.shown)) for name in account.sm.by_tensor})
    lines.append(
        rf"$R$ and $W$, each times its bytes an element (${'$, $'.join(widths)}$), add up to $D_{{\mathrm{{SM}}}}$."
    )
    return [*lines, "This proves the claim."]

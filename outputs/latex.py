r"""LaTeX of closed forms and of a derivation, in a first form: every symbol has a declared spelling, none is guessed.

``sympy.latex`` reads suffixes of names as accents (``C_HBM`` comes out bold), so symbols never go through it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.denote import equation
from derive.einsum import Map, Reduce
from derive.graph import Graph
from derive.symbols import MEANINGS
from outputs.formula import latex, symbol_latex
from outputs.notation import cases, put, tidy

if TYPE_CHECKING:
    from derive.einsum import Einsum
    from derive.rewrite import Rule, Step
    from derive.schedule import Schedule
    from outputs.explanation import Explanation


def einsum_latex(einsum: Einsum) -> str:
    """An Einsum as the equation it is."""
    read = [_access(t) for t in einsum.inputs]
    bodies = {
        Map.COPY: "{0}",
        Map.MUL: r"{0} \, {1}",
        Map.ADD: "{0} + {1}",
        Map.SUB: "{0} - {1}",
        Map.DIV: r"{0} / {1}",
        Map.EXP: r"\exp {0}",
        Map.SOFTMAX: r"\operatorname{{softmax}} {0}",
    }
    body = bodies[einsum.map].format(*read)
    if einsum.reduce is not None:
        operator = {Reduce.SUM: r"\sum", Reduce.MAX: r"\max"}[einsum.reduce]
        body = f"{operator}_{{{','.join(i.name for i in einsum.reduced)}}} {body}"
    return f"{_access(einsum.output)} = {body}"


def _access(tensor: Any) -> str:
    base, _, subscript = tensor.name.partition("_")
    name = rf"\mathrm{{{base}}}" if len(base) > 1 else base
    name = rf"{name}^{{\mathrm{{{subscript}}}}}" if subscript else name
    return f"{name}_{{{','.join(i.name for i in tensor.indices)}}}" if tensor.indices else name


def step_latex(step: Step) -> str:
    """What a step did, as mathematics: the new equations of an algebra step, the new loop nest of a schedule step."""
    if isinstance(step.after, Graph):
        return _new_equations(step.before, step.after)  # type: ignore[arg-type]
    return _new_nests(step.before, step.after)  # type: ignore[arg-type]


def statement_latex(rule: Rule[Any]) -> str | None:
    """A rule's equation, computed from what it does to its own example; ``None`` when both sides are written alike."""
    before = rule.example()
    if not isinstance(before, Graph):
        return None
    after = rule.rewrite(before, next(iter(rule.matches(before))))
    name = before.outputs[0]
    left, right = (latex(equation(graph, name).rhs) for graph in (before, after))
    return None if left == right else f"{left} = {right}"


def _new_equations(before: Graph, after: Graph) -> str:
    fresh = [e for e in after.einsums if e not in before.einsums]
    rescaled = {e.rescale for e in fresh if e.rescale}
    equations = r",\quad ".join(einsum_latex(e) for e in fresh)
    note = "".join(rf" \text{{ (rescaled as }} {m} \text{{ rises)}}" for m in sorted(rescaled))
    return equations + note


def _new_nests(before: Schedule, after: Schedule) -> str:
    lines = []
    for kernel in after.kernels:
        if kernel in before.kernels:
            continue
        loops = r" \triangleright ".join(
            (r"\mathrm{grid}\;" if loop.grid else r"\mathrm{for}\;")
            + r" \times ".join(i.name for i in loop.indices)
            + rf" : {latex(loop.tile)}"
            for loop in kernel.loops
        )
        lines.append(loops or rf"\text{{kernel of {len(kernel.einsums)} operations}}")
    return r",\quad ".join(lines)


def document(explanation: Explanation) -> str:
    """A standalone LaTeX document: notation, the derivation of each schedule step by step, and its closed forms."""
    request = explanation.request
    symbols = {
        s.name
        for a in explanation.accounts
        for e in (a.sm.total.amount, a.dram.total.amount)
        for s in put(e, explanation.shown).free_symbols
    }
    meanings = {"N": "queries, and keys, a head"} | {n: m.says for n, m in MEANINGS.items()}
    rows = [rf"${symbol_latex(n)}$ & {_escaped(says)} \\" for n, says in meanings.items() if n in symbols]
    body = [
        r"\documentclass{article}",
        r"\usepackage{amsmath,booktabs}",
        r"\begin{document}",
        rf"\section*{{{_escaped(request.variant.name)}: {_escaped(request.variant.says)}}}",
        r"\begin{tabular}{ll}",
        r"\toprule symbol & meaning \\ \midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    for account in explanation.accounts:
        body += [rf"\subsection*{{Schedule {_escaped(account.name)}}}", r"\begin{enumerate}"]
        for step in account.derivation.steps:
            body += [
                rf"\item \textbf{{{_escaped(step.rule.name)}}}: {_escaped(step.rule.claim)}.",
                rf"  Legal because {_escaped('; '.join(step.reasons))} ({_escaped(step.rule.reference)}).",
                rf"  \[\begin{{aligned}} {_rows(step_latex(step))} \end{{aligned}}\]",
            ]
            if (statement := statement_latex(step.rule)) is not None:
                body.append(rf"  In general \[ {statement}. \]")
        body.append(r"\end{enumerate}")
        for label, moves in (("Compulsory", account.compulsory), ("SM-side", account.sm), ("HBM", account.dram)):
            body.append(rf"\noindent {label} bytes:")
            body += [rf"\[ {line} \]" for line in _cases_latex(explanation, moves.total.amount)]
    return "\n".join([*body, r"\end{document}", ""])


def _rows(equations: str) -> str:
    return r" \\ ".join("& " + part for part in equations.split(r",\quad "))


def _cases_latex(explanation: Explanation, amount: sp.Expr) -> list[str]:
    found = cases(put(amount, explanation.shown))
    lines = []
    for each, condition in found:
        when = "" if condition == sp.true else rf" \qquad \text{{if }} {latex(condition)}"
        otherwise = r" \qquad \text{otherwise}" if condition == sp.true and len(found) > 1 else ""
        lines.append(latex(tidy(each)) + when + otherwise)
    return lines


def _escaped(words: str) -> str:
    """Plain words as LaTeX text."""
    table = {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "<": "$<$", ">": "$>$"}
    return re.sub(r"[&%$#_{}^~\\<>]", lambda m: table.get(m[0], "\\" + m[0]), words)

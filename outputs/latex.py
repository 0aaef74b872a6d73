r"""LaTeX of closed forms and of a derivation, in a first form: every symbol has a declared spelling, none is guessed.

``sympy.latex`` reads suffixes of names as accents (``C_HBM`` comes out bold), so symbols never go through it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from derive.denote import equation
from derive.einsum import Map, Reduce
from derive.graph import Graph
from derive.symbols import MEANINGS
from outputs.notation import cases, put, rank, tidy

if TYPE_CHECKING:
    from derive.einsum import Einsum
    from derive.rewrite import Rule, Step
    from derive.schedule import Schedule
    from outputs.explanation import Explanation

_RELATIONS = {"<=": r"\le", "<": "<", "==": "=", "!=": r"\ne"}
_UPRIGHT = frozenset({"L2", "kv", "acc", "reg"})


class HousePrinter(LatexPrinter):  # type: ignore[misc]
    """SymPy's printer with the house's symbols, factor order and inequalities."""

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:  # noqa: ARG002
        return symbol_latex(expr.name)

    def _print_Mul(self, expr: Any) -> str:
        number, rest = expr.as_coeff_Mul()
        factors = sorted(sp.Mul.make_args(rest), key=_factor_order)
        above = [f for f in factors if not _divides(f)]
        below = [1 / f for f in factors if _divides(f)]
        top = ([str(abs(number.p))] if abs(number.p) != 1 or not above else []) + self._factors(above, number.p)
        bottom = ([str(number.q)] if number.q != 1 else []) + self._factors(below, number.q)
        sign = "-" if number < 0 else ""
        if bottom:
            return rf"{sign}\frac{{{' '.join(top)}}}{{{' '.join(bottom)}}}"
        return sign + " ".join(top)

    def _factors(self, factors: list[Any], number: int) -> list[str]:
        """Factors of a product; one that stands alone needs no brackets."""
        alone = len(factors) == 1 and abs(number) == 1 and factors[0].func is sp.Sum
        return [self._print(f) if alone else self._factor(f) for f in factors]

    def _factor(self, factor: Any) -> str:
        printed = self._print(factor)
        return rf"\left({printed}\right)" if factor.is_Add or factor.func is sp.Sum else printed

    def _print_Relational(self, expr: Any) -> str:
        left, right, operator = expr.lhs, expr.rhs, expr.rel_op
        if operator in (">=", ">"):
            left, right, operator = right, left, operator.replace(">", "<")
        return f"{self._print(left)} {_RELATIONS[operator]} {self._print(right)}"

    def _print_And(self, expr: Any) -> str:
        return r" \text{ and } ".join(sorted(self._print(a) for a in expr.args))

    def _print_Piecewise(self, expr: Any) -> str:
        rows = [rf"{self._print(a)} & \text{{if }} {self._print(c)}" for a, c in expr.args[:-1]]
        rows.append(rf"{self._print(expr.args[-1][0])} & \text{{otherwise}}")
        return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"

    def _print_Function(self, expr: Any, exp: Any = None) -> str:
        if expr.func.__name__ != "max":
            return str(super()._print_Function(expr, exp))
        term, (index, low, high) = expr.args[0], expr.args[1].args
        limits = rf"{self._print(low)} \le {self._print(index)} \le {self._print(high)}"
        return rf"\max_{{{limits}}} {self._factor(term)}"

    def _print_Gcd(self, expr: Any) -> str:
        return rf"\gcd\left({', '.join(self._print(a) for a in expr.args)}\right)"


def symbol_latex(name: str) -> str:
    r"""A symbol's spelling: one base, and a subscript that is upright when it is a word; ``C_L2`` is ``C_{\mathrm{L2}}``."""
    base, _, subscript = name.partition("_")
    if not subscript:
        return base
    return (
        rf"{base}_{{\mathrm{{{subscript}}}}}" if len(subscript) > 1 or subscript in _UPRIGHT else f"{base}_{subscript}"
    )


def _divides(factor: Any) -> bool:
    return bool(factor.is_Pow and factor.exp.is_number and factor.exp.is_negative)


def _factor_order(factor: Any) -> tuple[int, int, str]:
    base = factor.base if factor.is_Pow else factor
    return (0, *rank(base)) if base.is_Symbol else (1 + base.is_Add, 0, str(base))


def latex(expression: sp.Basic) -> str:
    """*expression* in house notation as LaTeX (amsmath)."""
    return str(HousePrinter().doprint(expression))


def einsum_latex(einsum: Einsum) -> str:
    """An Einsum as the equation it is."""
    read = [_access(t) for t in einsum.inputs]
    bodies = {
        Map.COPY: "{0}",
        Map.MUL: r"{0} \, {1}",
        Map.ADD: "{0} + {1}",
        Map.SUB: "{0} - {1}",
        Map.DIV: r"{0} / {1}",
        Map.NEG: "-{0}",
        Map.EXP: r"\exp {0}",
        Map.LOG: r"\log {0}",
        Map.SOFTMAX: r"\operatorname{{softmax}} {0}",
        Map.SOFTMAX_GRADIENT: r"{1} \, \partial\operatorname{{softmax}}({0})",
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
    rows = [rf"${symbol_latex(n)}$ & {escaped(says)} \\" for n, says in meanings.items() if n in symbols]
    body = [
        r"\documentclass{article}",
        r"\usepackage{amsmath,booktabs}",
        r"\begin{document}",
        rf"\section*{{{escaped(request.variant.name)}: {escaped(request.variant.says)}}}",
        r"\begin{tabular}{ll}",
        r"\toprule symbol & meaning \\ \midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    for account in explanation.accounts:
        body += [rf"\subsection*{{Schedule {escaped(account.name)}}}", r"\begin{enumerate}"]
        for step in account.derivation.steps:
            body += [
                rf"\item \textbf{{{escaped(step.rule.name)}}}: {escaped(step.rule.claim)}.",
                rf"  Legal because {escaped('; '.join(step.reasons))} ({escaped(step.rule.reference)}).",
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


def escaped(words: str) -> str:
    """Plain words as LaTeX text."""
    table = {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "<": "$<$", ">": "$>$"}
    return re.sub(r"[&%$#_{}^~\\<>]", lambda m: table.get(m[0], "\\" + m[0]), words)

r"""Closed forms as LaTeX (amsmath): house symbols, house order, small <= big; the twin of ``outputs.notation``.

``2*b*d*N*(ceiling(N/B_r) + 1)`` prints as ``2 N d b \left(1 + \left\lceil \frac{N}{B_r} \right\rceil\right)``.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from derive.exact import Gcd
from derive.met_blocks import Listed, Met
from derive.same import Same
from derive.steps import Steps
from outputs.notation import RELATIONS, fraction, in_order, text
from outputs.spelling import spelling

_SIGNS = {"<=": r"\le", "<": "<", "=": "=", "!=": r"\ne"}
_NODES = (
    sp.Symbol, sp.Rational, sp.Add, sp.Mul, sp.Pow, sp.ceiling, sp.floor, sp.Min, sp.Max, sp.Sum, sp.Piecewise, sp.And,
    sp.Or, Gcd, Steps, Met, Listed, Same, sp.KroneckerDelta, sp.exp, sp.log, sp.Indexed, sp.IndexedBase, sp.Tuple,
    sp.logic.boolalg.BooleanAtom, sp.core.relational.Relational, sp.functions.elementary.piecewise.ExprCondPair, sp.Idx,
)  # fmt: skip
"""What has a notation, besides ``max`` over a range."""


def latex(expression: sp.Basic) -> str:
    """*expression* in house notation.

    Raises:
        TypeError: a node that has no notation; it is never guessed.
    """
    for node in sp.preorder_traversal(expression):
        known = isinstance(node, (*_NODES, str)) or node.func.__name__ == "max"
        if not known:
            raise TypeError(f"{node.func.__name__} has no house notation: {node}")
    return str(HousePrinter().doprint(expression))


def symbol_latex(name: str) -> str:
    r"""The spelling of a symbol; ``C_L2`` is ``C_{\mathrm{L2}}``."""
    return spelling(name).latex


class HousePrinter(LatexPrinter):  # type: ignore[misc]
    """SymPy's printer with the house's symbols, orders and inequalities."""

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:  # noqa: ARG002
        return symbol_latex(expr.name)

    def _print_Add(self, expr: Any, order: Any = None) -> str:  # noqa: ARG002
        printed, terms = "", in_order(expr)
        for term in terms:
            negative = term.could_extract_minus_sign()
            open_ended = term.func is sp.Sum and term != terms[-1]
            body = self._bracketed(-term if negative else term) if negative or open_ended else self._print(term)
            sign = (" - " if negative else " + ") if printed else ("-" if negative else "")
            printed += sign + body
        return printed

    def _print_Mul(self, expr: Any) -> str:
        number, above, below = fraction(expr)
        ruled = bool(below) or number.q != 1
        top = ([str(abs(number.p))] if abs(number.p) != 1 or not above else []) + self._factors(above, number.p, ruled)
        bottom = ([str(number.q)] if number.q != 1 else []) + self._factors(below, number.q, ruled)
        sign = "-" if number < 0 else ""
        if bottom:
            return rf"{sign}\frac{{{' '.join(top)}}}{{{' '.join(bottom)}}}"
        return sign + " ".join(top)

    def _factors(self, factors: list[Any], number: int, ruled: bool) -> list[str]:
        """Factors of a product; one that stands alone above or below the line needs no brackets."""
        alone = ruled and len(factors) == 1 and number == 1
        return [self._print(f) if alone else self._bracketed(f) for f in factors]

    def _bracketed(self, factor: Any) -> str:
        printed = str(self._print(factor))
        loose = factor.is_Add or factor.func is sp.Sum or factor.is_Piecewise or printed.startswith("-")
        return rf"\left({printed}\right)" if loose else printed

    def _print_Pow(self, expr: Any) -> str:
        if expr.exp == sp.Rational(1, 2):
            return rf"\sqrt{{{self._print(expr.base)}}}"
        if expr.exp.is_number and expr.exp.is_negative:
            return rf"\frac{{1}}{{{self._print(1 / expr)}}}"
        plain = expr.base.is_Symbol or expr.base.is_Integer or expr.base.func in (sp.ceiling, sp.floor)
        base = self._print(expr.base)
        if not plain or base.startswith("-"):
            base = rf"\left({base}\right)"
        above = f"{expr.exp.p}/{expr.exp.q}" if expr.exp.is_Rational and expr.exp.q != 1 else self._print(expr.exp)
        return rf"{base}^{{{above}}}"

    def _print_Rational(self, expr: Any) -> str:
        return str(expr.p) if expr.q == 1 else rf"{'-' if expr.p < 0 else ''}\frac{{{abs(expr.p)}}}{{{expr.q}}}"

    def _print_ceiling(self, expr: Any, exp: Any = None) -> str:  # noqa: ARG002
        return rf"\left\lceil {self._print(expr.args[0])} \right\rceil"

    def _print_floor(self, expr: Any, exp: Any = None) -> str:  # noqa: ARG002
        return rf"\left\lfloor {self._print(expr.args[0])} \right\rfloor"

    def _print_Min(self, expr: Any, exp: Any = None) -> str:  # noqa: ARG002
        return self._call(r"\min", expr)

    def _print_Max(self, expr: Any, exp: Any = None) -> str:  # noqa: ARG002
        return self._call(r"\max", expr)

    def _call(self, name: str, expr: Any) -> str:
        """A function of several arguments, the shortest first, as in the text form."""
        arguments = sorted(expr.args, key=lambda a: len(text(a)))
        return rf"{name}\left({', '.join(self._print(a) for a in arguments)}\right)"

    def _print_Gcd(self, expr: Any) -> str:
        return rf"\gcd\left({', '.join(self._print(a) for a in expr.args)}\right)"

    def _print_Met(self, expr: Any) -> str:
        shown = ", ".join(self._print(a) for a in expr.shown)
        return rf"\operatorname{{{expr.counts}}}\left({shown}\right)"

    def _print_Same(self, expr: Any) -> str:
        left, right = (self._print(a) for a in expr.args)
        return rf"\left[{left} = {right}\right]"

    def _print_KroneckerDelta(self, expr: Any, exp: Any = None) -> str:  # noqa: ARG002
        return rf"\delta_{{{self._print(expr.args[0])} {self._print(expr.args[1])}}}"

    def _print_Sum(self, expr: Any) -> str:
        """Each sum with its own sign, the outermost first."""
        index, low, high = expr.args[-1].args
        inner = expr.args[0] if len(expr.args) == 2 else sp.Sum(*expr.args[:-1])
        body = rf"\left({self._print(inner)}\right)" if inner.is_Add or inner.is_Piecewise else self._print(inner)
        return rf"\sum_{{{self._print(index)}={self._print(low)}}}^{{{self._print(high)}}} {body}"

    def _print_Relational(self, expr: Any) -> str:
        left, right, operator = expr.lhs, expr.rhs, RELATIONS[expr.func]
        if operator in (">=", ">"):
            left, right, operator = right, left, operator.replace(">", "<")
        return f"{self._print(left)} {_SIGNS[operator]} {self._print(right)}"

    def _print_And(self, expr: Any) -> str:
        either = [rf"\left({self._print(a)}\right)" if isinstance(a, sp.Or) else self._print(a) for a in expr.args]
        return r" \text{ and } ".join(sorted(either))

    def _print_Or(self, expr: Any) -> str:
        return r" \text{ or } ".join(sorted(self._print(a) for a in expr.args))

    def _print_Piecewise(self, expr: Any) -> str:
        rows = [rf"{self._print(a)} & \text{{if }} {self._print(c)}" for a, c in expr.args[:-1]]
        rows.append(rf"{self._print(expr.args[-1][0])} & \text{{otherwise}}")
        return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"

    def _print_Function(self, expr: Any, exp: Any = None) -> str:
        if expr.func.__name__ != "max":
            return str(super()._print_Function(expr, exp))
        term, (index, low, high) = expr.args[0], expr.args[1].args
        limits = rf"{self._print(low)} \le {self._print(index)} \le {self._print(high)}"
        return rf"\max_{{{limits}}} {self._bracketed(term)}"

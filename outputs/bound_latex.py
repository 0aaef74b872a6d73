r"""``derive bound -o FILE.tex``: the classes, their certificates, the regimes and the lower bounds as a LaTeX document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import sympy as sp

from derive.growth.parameters import Condition
from derive.symbols import MEANINGS
from outputs.bound_text import constants
from outputs.formula import latex, symbol_latex
from outputs.notation import chain
from outputs.paper.tex import escaped

if TYPE_CHECKING:
    from outputs.bounds import Bounds


def document(answer: Bounds) -> str:
    """A standalone document; amsmath and booktabs are all it needs."""
    request = answer.request
    body = [
        r"\documentclass{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage{lmodern}",
        r"\usepackage{amsmath,booktabs}",
        r"\begin{document}",
        rf"\section*{{How the traffic of {escaped(request.variant.name)} must grow}}",
        rf"{escaped(request.variant.says)}. Counts are elements that cross between the cache and a fast memory of $M$ elements,"
        " over all tiles that fit; a class leaves constants out and is no byte count.",
        *_notation(answer),
        *_classes(answer),
    ]
    for name in answer.classes:
        body += _certificates(answer, name)
    return "\n".join([*body, *_best(answer), *_lower(answer), r"\end{document}", ""])


def _notation(answer: Bounds) -> list[str]:
    meanings = {"N": "queries, and keys, a head"} | {n: m.says for n, m in MEANINGS.items()}
    tiles = {t.name for f in answer.classes.values() for lead in f.leads for _, tiles in lead.tilings for t in tiles}
    names = [n for n in meanings if n in {s.name for s in answer.symbols} | tiles]
    rows = [rf"${symbol_latex(n)}$ & {escaped(meanings[n])} \\" for n in names]
    return _table("ll", "symbol & meaning", rows)


def _classes(answer: Bounds) -> list[str]:
    rows = []
    for name, found in answer.classes.items():
        needs = _chain(answer.beyond(found.region))
        rows.append(rf"{escaped(name)} & ${_theta(found.monomials)}$ & {f'${needs}$' if needs else 'always'} \\")
    return [r"\subsection*{Classes}", *_table("lll", "schedule & class & tiles fit while", rows)]


def _certificates(answer: Bounds, name: str) -> list[str]:
    found = answer.classes[name]
    lines = [rf"\subsection*{{{escaped(name)}}}", r"\begin{itemize}"]
    for lead in found.leads:
        where = _chain(answer.beyond(lead.region))
        leads = rf"\item ${latex(lead.monomial)}$ leads {f'where ${where}$' if where else 'throughout'}"
        numbered = constants(lead, lambda e: f"${latex(e)}$")
        lines.append(f"{leads}, {numbered}." if numbered else f"{leads}.")
        for _, tiles in lead.tilings[:1]:
            if tiles:
                chosen = ",\\; ".join(f"{latex(t)} = {latex(e)}" for t, e in tiles.items())
                lines.append(f"  Reached by ${chosen}$.")
    lines.append(r"\end{itemize}")
    return lines


def _best(answer: Bounds) -> list[str]:
    rows = []
    for each in answer.best:
        where = _chain(each.conditions)
        names = escaped(", ".join(each.schedules))
        rows.append(rf"{f'${where}$' if where else 'everywhere'} & ${_theta([each.monomial])}$ & {names} \\")
    return [r"\subsection*{The best schedule by regime}", *_table("lll", "where & least class & by", rows)]


def _lower(answer: Bounds) -> list[str]:
    rows = []
    for bound in answer.below.lower:
        where = _chain(answer.beyond(bound.region))
        amount = rf"\Omega\left({latex(bound.monomial)}\right)"
        if bound.constant is not None:
            amount = latex(bound.constant * bound.monomial) + (f" - {latex(bound.less)}" if bound.less != 0 else "")
        how = escaped(bound.source or bound.how)
        rows.append(
            rf"${amount}$ & {f'${where}$' if where else 'everywhere'} & {bound.status} & \raggedright {how} \tabularnewline"
        )
    return [
        r"\subsection*{Lower bounds on every schedule, in elements}",
        *_table(r"lllp{0.42\linewidth}", "at least & where & status & source", rows),
    ]


def _table(columns: str, heads: str, rows: list[str]) -> list[str]:
    return [
        r"\par\medskip\noindent",
        rf"\begin{{tabular}}{{{columns}}}",
        rf"\toprule {heads} \\ \midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\medskip",
    ]


def _theta(monomials: Iterable[sp.Expr]) -> str:
    return rf"\Theta\left({' + '.join(map(latex, monomials))}\right)"


def _chain(conditions: Iterable[Condition]) -> str:
    return chain(conditions, latex, r" \le ", r" \text{ and } ")

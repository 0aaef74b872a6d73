"""Each derivation, one formula a row: what a rule made of the cascade, why that is legal, and where it is proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.graph import Graph
from derive.schedule import Schedule
from outputs.formula import latex
from outputs.latex import nest_latex, new_equations, rescaled_by, statement_sides
from outputs.notation import put
from outputs.report.markup import Markup, element, formula, scrolled

if TYPE_CHECKING:
    from derive.rewrite import Derivation, Step


def derivation(found: Derivation, shown: Mapping[Any, Any]) -> Markup:
    """One derivation; conditions are written with the replacements *shown*."""
    start = new_equations(Graph((), ()), found.start)
    steps = [_step(step, shown) for step in found.steps]
    first = element("li", element("p", element("b", "start"), ": the variant as it is written"), *_rows(start))
    return element(
        "details",
        element("summary", f"{found.name}, {len(found.steps)} steps"),
        scrolled(element("ol", first, *steps, class_="steps", start="0"), label=f"derivation of {found.name}"),
        open=True,
    )


def _step(step: Step, shown: Mapping[Any, Any]) -> Markup:
    rule = step.rule
    parts: list[Markup] = [element("p", element("b", str(rule)), f": {rule.claim}")]
    if step.reasons:
        parts.append(element("p", f"legal, because {'; '.join(step.reasons)}", class_="why"))
    if step.condition != sp.true:
        parts.append(element("p", "holds while ", formula(latex(put(step.condition, shown)))))
    rows: list[str] = []
    if isinstance(step.before, Graph) and isinstance(step.after, Graph):
        if (sides := statement_sides(rule)) is not None:
            parts += [element("p", "in general", class_="why"), *_rows([f"{sides[0]} = {sides[1]}"])]
            parts.append(element("p", "and here", class_="why"))
        rows = new_equations(step.before, step.after)
        rescaled = rescaled_by(step.before, step.after)
    elif isinstance(step.before, Schedule) and isinstance(step.after, Schedule):
        before = {(k.einsums, k.loops) for k in step.before.kernels}
        rows = [nest_latex(k) for k in step.after.kernels if (k.einsums, k.loops) not in before]
        rescaled = []
    else:
        rescaled = []
    if rows:
        parts += _rows(rows)
    parts += [element("p", f"each sum rescaled whenever {m} rises", class_="why") for m in rescaled]
    parts.append(element("p", f"[{rule.reference}]", class_="source"))
    return element("li", *parts)


def _rows(rows: list[str]) -> list[Markup]:
    return [element("div", formula(row), class_="row") for row in rows]

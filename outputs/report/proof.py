"""Each derivation, one formula a row: what a rule made of the cascade, why that is legal, and where it is proved.

Derivations that begin alike, and a rule used by several, are said once: the next that has the same step points to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.graph import Graph
from derive.schedule import Schedule
from outputs.formula import latex
from outputs.latex import nest_latex, new_equations, rescaled_by, statement_sides
from outputs.notation import put
from outputs.report.markup import Markup, element, formula, joined, scrolled

if TYPE_CHECKING:
    from derive.rewrite import Derivation, Step


def derivations(found: Sequence[Derivation], shown: Mapping[Any, Any], page: str = "step") -> Markup:
    """Derivations of one *page*; conditions are written with the replacements *shown*."""
    said = _Said(page)
    return joined(*(_derivation(each, shown, said) for each in found))


@dataclass(frozen=True)
class _Said:
    """What the page has shown already, by its LaTeX and words, and where.

    Attributes:
        page: what the ids of places on it begin with.
        places: by content, the id of the step that shows it, and its name.
    """

    page: str
    places: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)

    def once(
        self, content: tuple[str, ...], place: tuple[str, str], shown: Callable[[], list[Markup]], words: str = ""
    ) -> list[Markup]:
        """What *shown* makes of *content*; where the page has it already, *words* and a link to that *place*."""
        if (before := self.places.setdefault(content, place)) == place:
            return shown()
        return [element("p", f"{words}as in ", element("a", before[1], href=f"#{before[0]}"), class_="why")]


def _derivation(found: Derivation, shown: Mapping[Any, Any], said: _Said) -> Markup:
    items = []
    for n, step in enumerate((None, *found.steps)):
        place = (f"{said.page}-{found.name}-{n}", f"step {n} of {found.name}" if n else f"the start of {found.name}")
        if step is None:
            rows = new_equations(Graph((), ()), found.start)
            head = element("p", element("b", "start"), ": the variant as it is written")
            body = said.once(("start", *rows), place, lambda rows=rows: _rows(rows))  # type: ignore[misc]
        else:
            head = element("p", element("b", str(step.rule)), f": {step.rule.claim}")
            body = _step(step, shown, place, said)
        items.append(element("li", head, *body, id=place[0]))
    return element(
        "details",
        element("summary", f"{found.name}, {len(found.steps)} steps"),
        scrolled(element("ol", *items, class_="steps", start="0"), label=f"derivation of {found.name}"),
        open=True,
    )


def _step(step: Step, shown: Mapping[Any, Any], place: tuple[str, str], said: _Said) -> list[Markup]:
    """Why a step is legal, when it holds, what it says in general and what it made here."""
    rule, rescaled, sides = step.rule, list[str](), None
    rows: list[str] = []
    if isinstance(step.before, Graph) and isinstance(step.after, Graph):
        sides = statement_sides(rule)
        rows = new_equations(step.before, step.after)
        rescaled = rescaled_by(step.before, step.after)
    elif isinstance(step.before, Schedule) and isinstance(step.after, Schedule):
        before = {(k.einsums, k.loops) for k in step.before.kernels}
        rows = [nest_latex(k) for k in step.after.kernels if (k.einsums, k.loops) not in before]
    holds = step.condition  # worked out each time it is asked for
    condition = "" if holds == sp.true else latex(put(holds, shown))

    def whole() -> list[Markup]:
        parts: list[Markup] = []
        if step.reasons:
            legal = f"legal, because {'; '.join(step.reasons)}"
            parts += said.once((legal,), place, lambda: [element("p", legal, class_="why")], "legal, ")
        if condition:
            parts.append(element("p", "holds while ", formula(condition)))
        if sides is not None:
            general = f"{sides[0]} = {sides[1]}"
            parts.append(element("p", "in general", class_="why"))
            parts += said.once(("in general", general), place, lambda: _rows([general]))
            parts.append(element("p", "and here", class_="why"))
        parts += _rows(rows)
        parts += [element("p", f"each sum rescaled whenever {m} rises", class_="why") for m in rescaled]
        return [*parts, element("p", f"[{rule.reference}]", class_="source")]

    return said.once((str(rule), *step.reasons, condition, *rows, *rescaled), place, whole)


def _rows(rows: list[str]) -> list[Markup]:
    return [element("div", formula(row), class_="row") for row in rows]

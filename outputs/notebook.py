r"""Graphs, schedules and derivations that show themselves in a notebook: ``%load_ext outputs.notebook``.

HTML has the drawing, or the steps with their formulas as MathML; no script is in it. LaTeX is one ``$\displaystyle ...$``, with
nothing in it that KaTeX does not know.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Protocol
from zlib import crc32

import latex2mathml.converter  # noqa: F401 - here, so that nothing is loaded while something is shown

from derive.errors import DeriveError
from derive.graph import Graph
from derive.rewrite import Derivation
from derive.schedule import Schedule
from outputs.account import Account
from outputs.latex import nest_latex, new_equations
from outputs.paper.tex import escaped
from outputs.report.dataflow import graph_drawn, schedule_drawn
from outputs.report.markup import Markup, element
from outputs.report.proof import derivations

Subject = Graph | Schedule | Derivation
_NEWLINE = r" \\ "


class _IPython(Protocol):
    """What this module asks of IPython's shell."""

    display_formatter: Any


def load_ipython_extension(ipython: _IPython) -> None:
    """Let graphs, schedules and derivations show themselves; IPython calls this at ``%load_ext outputs.notebook``."""
    formatters = ipython.display_formatter.formatters
    for kind in (Graph, Schedule, Derivation):
        formatters["text/html"].for_type(kind, as_html)
        formatters["text/latex"].for_type(kind, as_latex)


def as_html(subject: Subject) -> str:
    """*subject* drawn, or step by step; its text where a formula has no MathML."""
    try:
        drawn = _drawn(subject)
    except DeriveError:
        drawn = Markup(f"<pre>{escape(str(subject))}</pre>")
    return element("div", element("style", Markup(_style())), drawn, class_="attn-derive")


def as_latex(subject: Subject) -> str:
    """*subject* as one formula: its equations, its loop nests, or the equations that each step brought."""
    if isinstance(subject, Graph):
        rows = new_equations(Graph((), ()), subject)
    elif isinstance(subject, Schedule):
        rows = [rf"\text{{{escaped(k.name)}}}:\; {nest_latex(k)}" for k in subject.kernels]
    else:
        rows = []
        for step in subject.steps:
            if isinstance(step.before, Graph) and isinstance(step.after, Graph):
                made = new_equations(step.before, step.after)
            else:
                made = [nest_latex(k) for k in step.after.kernels if k not in step.before.kernels]  # type: ignore[union-attr]
            rows += [rf"\text{{{escaped(str(step.rule))}}}:\; {row}" for row in made]
    if not rows and isinstance(subject, Derivation):
        rows = new_equations(Graph((), ()), subject.start)  # no step changed what is written
    return rf"$\displaystyle \begin{{array}}{{l}} {_NEWLINE.join(rows)} \end{{array}}$"


def _drawn(subject: Subject) -> Markup:
    name = f"derive-{crc32(str(subject).encode()):08x}"
    if isinstance(subject, Graph):
        return graph_drawn(subject, name)
    if isinstance(subject, Schedule):
        return schedule_drawn(Account(Derivation(name, subject.graph, (), subject), {}), "schedule")
    return derivations([subject], {}, name)


@cache
def _style() -> str:
    return (files("outputs") / "notebook.css").read_text(encoding="utf-8")

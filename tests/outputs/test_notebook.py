from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from derive.rewrite import Derivation
from outputs import notebook
from outputs.notebook import as_html, as_latex, load_ipython_extension
from tests.outputs.test_report import Tree
from tests.strategies import PAIRS, derivation

LAWFUL = re.compile(r"\\(begin\{array\}|end\{array\}|tag|label|align|substack|intertext)")


def subjects(variant: str, schedule: str) -> tuple[Any, ...]:
    """A graph, a schedule and a derivation."""
    found = derivation(variant, schedule, "full")
    return found.start, found.schedule, found


@pytest.mark.parametrize(("variant", "schedule"), PAIRS[::3])
def test_everything_shows_itself(variant: str, schedule: str) -> None:
    """HTML that parses, with no script and class names of its own; one formula that KaTeX reads."""
    for subject in subjects(variant, schedule):
        page = as_html(subject)
        tags = Tree(page).tags
        assert tags[0] == ("div", {"class": "attn-derive"})
        assert {tag for tag, _ in tags} & {"svg", "math"}
        assert "script" not in {tag for tag, _ in tags}
        assert not [a for _, a in tags if "style" in a or any(key.startswith("on") for key in a)]
        written = as_latex(subject)
        assert written.startswith(r"$\displaystyle ")
        assert written.endswith("$")
        assert set(LAWFUL.findall(written)) == {r"begin{array}", r"end{array}"}
        assert written.isascii()
        assert written.count("$") == 2
        assert written.count("{") == written.count("}")


def test_every_rule_of_the_style_sheet_is_for_these_elements_alone() -> None:
    """A notebook's own boxes keep their looks."""
    for selectors in re.findall(r"^([^{]*)\{", notebook._style(), flags=re.MULTILINE):
        assert all(s.strip().startswith(".attn-derive") for s in selectors.split(","))


def test_what_is_drawn_names_every_tensor() -> None:
    """Each tensor of the graph is a box of the drawing."""
    start = derivation("mha", "flash2", "full").start
    svg = re.search(r"<svg.*</svg>", as_html(start), flags=re.DOTALL)
    assert svg
    words = Tree(svg[0]).texts["text"]
    for tensor in start.tensors.values():
        assert not tensor.indices or f"{tensor.name}[{','.join(i.name for i in tensor.indices)}]" in words


def test_a_formula_without_mathml_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Showing never raises: names that could be markup are escaped."""
    from derive.errors import DomainError

    def refuse(*_: object) -> None:
        raise DomainError("no MathML")

    monkeypatch.setattr(notebook, "derivations", refuse)
    found = derivation("mha", "flash2", "full")
    page = as_html(Derivation("<b>", found.start, (), found.schedule))
    assert "<pre>&lt;b&gt;:\n" in page


def test_the_extension_registers_each_type_once() -> None:
    """As IPython's formatters are asked: a function by type."""
    registered: dict[str, dict[type, Any]] = {"text/html": {}, "text/latex": {}}
    formatters = {key: SimpleNamespace(for_type=kinds.__setitem__) for key, kinds in registered.items()}
    load_ipython_extension(SimpleNamespace(display_formatter=SimpleNamespace(formatters=formatters)))
    for subject in subjects("mha", "flash2"):
        assert registered["text/html"][type(subject)](subject).startswith("<div")
        assert registered["text/latex"][type(subject)](subject).startswith("$")

"""What notebooks show is read by KaTeX: by its own parser in Chromium, and without it by a list of what it knows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from derive.attention import names as variant_names
from derive.attention import variant
from derive.errors import DomainError
from outputs.explanation import Explanation
from outputs.formula_list import closed_forms
from outputs.formula_list import derivation as derived
from outputs.mathml import COMMANDS, mathml
from outputs.notebook import as_latex
from outputs.request import read_request
from tests.outputs.browser import show
from tests.strategies import PAIRS, derivation

KATEX = Path("/usr/share/javascript/katex/katex.js")
"""Where Debian's libjs-katex puts it."""
BROKEN = (
    r"\frac{N}{B_r",
    r"\left( N",
    r"\bigO N",
    "a & b",
    "a^2^3",
    "a_b_c",
    r"\begin{cases} a & b",
    r"\begin{cases} a \end{array}",
    r"\frac",
    r"N}",
    "N # d",
)
"""A mistake each, all of which KaTeX refuses."""
LINTS = {
    "only ASCII": lambda f: f.isascii(),
    "no blank line": lambda f: "\n\n" not in f,
    "one & in a row of cases": lambda f: all(
        row.count("&") <= 1
        for rows in re.findall(r"\\begin\{cases\}(.*?)\\end\{cases\}", f, flags=re.DOTALL)
        for row in rows.split(r"\\")
    ),
    "no bare sign in words": lambda f: re.search(r"\\text\{(?:[^{}\\]|\\.)*?[_#%&^]", f.replace(r"\_", "")) is None,
    "no tag": lambda f: r"\tag" not in f,
}
"""What pdfLaTeX refuses and KaTeX does not."""
_ARRAY = re.compile(r"\$\\displaystyle \\begin\{array\}\{l\} (.*) \\end\{array\}\$", re.DOTALL)


def shown() -> Iterator[str]:
    """What a notebook shows of graphs, schedules and derivations: every variant under every schedule."""
    for pair in PAIRS:
        found = derivation(*pair, "full")
        for subject in (found.start, found.schedule, found):
            yield as_latex(subject)


def printed() -> Iterator[str]:
    """Closed forms and steps of every variant under its own schedules."""
    for name in variant_names():
        found = variant(name)
        schedules = tuple(schedule for schedule in found.schedules if (name, schedule) in PAIRS)
        answer = Explanation(read_request(found, ()), schedules, None)
        yield from (latex for _, latex in (*closed_forms(answer), *derived(answer)))


def rows(formula: str) -> list[str]:
    """The rows of an array, which is all that stands around a notebook's formulas, signs in their words taken out."""
    found = _ARRAY.fullmatch(formula)
    return [formula] if found is None else found[1].replace(r"\_", "").split(r" \\ ")


@pytest.fixture(scope="module")
def formulas() -> list[str]:
    """Every formula of the catalogue, each once."""
    return list(dict.fromkeys((*shown(), *printed())))


def test_every_formula_is_in_the_subset(formulas: list[str]) -> None:
    """Balanced, of listed commands alone, and nothing that TeX refuses where KaTeX is lenient."""
    assert len(formulas) > 300
    for formula in formulas:
        broken = [says for says, holds in LINTS.items() if not holds(formula)]
        assert not broken, f"{broken}: {formula}"
        for row in dict.fromkeys(rows(formula)):
            mathml(row)


@pytest.mark.parametrize("formula", BROKEN)
def test_the_subset_refuses_what_katex_refuses(formula: str) -> None:
    """The parser that stands in for KaTeX notices the same mistakes."""
    with pytest.raises(DomainError):
        mathml(formula)


@pytest.mark.parametrize(("says", "formula"), [
    ("only ASCII", "N \N{LESS-THAN OR EQUAL TO} d"), ("no blank line", "N\n\n+ d"), ("no tag", r"N \tag{1}"),
    ("no bare sign in words", r"\text{a_b}"),
    ("one & in a row of cases", r"\begin{cases} a & b & c \\ d & e \end{cases}"),
])  # fmt: skip
def test_each_lint_notices_its_mistake(says: str, formula: str) -> None:
    """And no other one does."""
    assert [name for name, holds in LINTS.items() if not holds(formula)] == [says]


def refused(folder: Path, formulas: list[str]) -> dict[str, str]:
    """By formula what KaTeX says against it, strictly."""
    if not KATEX.is_file():
        if os.environ.get("CI"):
            pytest.fail(f"CI reads formulas with KaTeX, and there is no {KATEX}; apt-get install libjs-katex")
        pytest.skip("no KaTeX on this machine; apt-get install libjs-katex")
    asked = json.dumps([formula.strip("$") for formula in formulas]).replace("<", "\\u003c")
    script = KATEX.read_text(encoding="utf-8").replace("</script", "<\\/script")
    page = show(
        folder,
        f"""<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre><script>{script}</script><script>
        const found = {asked}.map(formula => {{
          try {{ katex.renderToString(formula, {{displayMode: true, strict: "error", throwOnError: true}}); return ""; }}
          catch (error) {{ return error.message; }}
        }});
        document.getElementById("found").textContent = JSON.stringify(found);</script>""",
    )
    answers = json.loads(page.text_of("found"))
    assert len(answers) == len(formulas)
    return {formula: says for formula, says in zip(formulas, answers, strict=True) if says}


def test_katex_reads_every_formula(formulas: list[str], tmp_path: Path) -> None:
    """All of the catalogue at once, in its strict mode."""
    assert refused(tmp_path, formulas) == {}


def test_katex_knows_every_listed_command_and_refuses_every_mistake(tmp_path: Path) -> None:
    """The list is no wider than KaTeX, and the check is alive."""
    needs = {r"\begin": r"\begin{cases} a \end{cases}", r"\frac": r"\frac{a}{b}", r"\left": r"\left( a \right)", r"\\": "a",
             r"\sqrt": r"\sqrt{a}", r"\text": r"\text{a}", r"\mathrm": r"\mathrm{a}", r"\operatorname": r"\operatorname{a}",
             r"\end": "a", r"\right": "a"}  # fmt: skip
    known = [needs.get(command, f"a {command} b") for command in sorted(COMMANDS)]
    broken = [*BROKEN, r"\text{a_b}"]
    assert set(refused(tmp_path, [*known, *broken])) == set(broken)

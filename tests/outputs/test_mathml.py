from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.einsum import Einsum, Index, Map, Tensor
from derive.errors import DomainError, IllFormedError
from derive.symbols import N_k, N_q, b, n_t
from outputs.formula import latex
from outputs.latex import einsum_latex, statement_latex, step_latex
from outputs.mathml import ELEMENTS, mathml
from rules.catalogue import ALL
from tests.outputs.expressions import engine_forms, forms
from tests.strategies import derivation

SPACE = "{http://www.w3.org/1998/Math/MathML}"
BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def tree(formula: str) -> Xml.Element:
    """The element, checked: it is XML, MathML Core, and no source is left in it."""
    root = Xml.fromstring(mathml(formula))
    assert {e.tag for e in root.iter()} <= {SPACE + name for name in ELEMENTS}
    assert not re.search(
        r"[\\&$^_]", "".join(t for e in root.iter() if e.tag != SPACE + "mtext" for t in [e.text or ""])
    )
    assert not any("columnalign" in e.attrib for e in root.iter())
    return root


def written(root: Xml.Element) -> str:
    """All its text."""
    return "".join(root.itertext())


def test_every_formula_of_the_engine_is_drawn() -> None:
    """Closed forms, rules and steps: all are in the subset; forms of hundreds of nodes are cut before they are drawn."""
    found = [latex(form) for form in engine_forms() if len(list(islice(sp.preorder_traversal(form), 300))) < 300]
    found += [s for rule in ALL if (s := statement_latex(rule)) is not None]
    for schedule in ("naive", "flash1", "flash2"):
        found += [step_latex(s) for s in derivation("gqa-repeated", schedule, "causal").steps]
    assert len(found) > 200
    for formula in found:
        tree(formula)


@pytest.mark.parametrize("map_", Map)
def test_every_operator_is_drawn(map_: Map) -> None:
    """The equation of each kind of Einsum, an operator that is added tomorrow too."""
    q = Index("q", N_q)
    j, k, row = Index("j", N_k), Index("k", n_t), Index("i", N_q)
    shapes = (  # of the operands and the result: some read scalars alone, some choose keys k among keys j; a square
        ((q,), (q,), (q,)),
        ((), (), (q,)),
        ((q, j), (q, j), (q, k)),
        ((j,), (q, k), (q, k)),
        ((q, row), (), (q, row)),
    )
    for first, second, result in shapes:
        x, y = Tensor("X", first, b), Tensor("Y_s", second, b)
        with contextlib.suppress(IllFormedError):
            tree(einsum_latex(Einsum(Tensor("Z", result, b), (x, y)[: map_.arity], map_)))
            return
    pytest.fail(f"no Einsum could be made with {map_}")


@settings(max_examples=150)
@given(forms)
def test_every_random_form_is_drawn(form: Any) -> None:
    """Whatever the printer writes."""
    tree(latex(form))


@pytest.mark.parametrize(
    ("formula", "path", "text"),
    [
        (r"\left\lceil \frac{N}{B_r} \right\rceil", ".//{S}mfrac", "NBr"),
        (r"\sum_{i=0}^{3} i", ".//{S}munderover", "∑i=03"),
        (r"2 \left(\sum_{i=0}^{3} i\right)", ".//{S}munderover", "∑i=03"),
        (r"\max_{0 \le k} S_{k}", ".//{S}munder", "max0≤k"),
        (r"\Theta\left(N\right)", ".//{S}mi[@mathvariant='normal']", "Θ"),
        (r"5 \mathrm{B}", ".//{S}mi[@mathvariant='normal']", "B"),
        (r"C_{\mathrm{L2}}", ".//{S}msub/{S}mi[2]", "L2"),
        (r"\begin{cases} a & \text{if } b \\ c & \text{otherwise} \end{cases}", ".//{S}mtd[@style]", "a"),
        (r"\text{a < b & \_}".replace(r"\_", "_"), ".//{S}mtext", "a < b & _"),
    ],
)
def test_what_latex2mathml_gets_wrong_is_repaired(formula: str, path: str, text: str) -> None:
    """Limits under the sum, upright Greek and units, words in one piece, text escaped."""
    found = tree(formula).find(path.replace("{S}", SPACE))
    assert found is not None
    assert written(found) == text


def test_text_cannot_become_markup() -> None:
    """A name with metacharacters is shown, never run."""
    assert "<script" not in mathml(r"\text{<script>alert(1)</script>}")
    assert "&lt;script&gt;" in mathml(r"\text{<script>alert(1)</script>}")


@pytest.mark.parametrize(
    "formula",
    [
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
        r"\begin{gather} a = b \\ c = d \end{gather}",
        r"\begin{array}{ll} a & b \end{array}",
        r"a & b",
        r"a \\[2pt] b",
        r"\operatorname*{arg\,min} x",
        r"\qty{260}{\mebi\byte}",
        r"\SI{1}{s}",
        r"x \tag{1}",
        r"x \label{a}",
        r"\bigl\lceil x \bigr\rceil",
        r"\text{costs $N$}",
        r"\texttt{a}",
        r"\boxed{x}",
        r"\cancel{x}",
        r"\bigO(n)",
        r"\frac{a",
        r"\frac{a}",
        r"\left( a",
        "a % b",
        "θ",
        r"a_b_c",
        r"\unknown",
    ],
)
def test_what_it_would_get_wrong_is_refused(formula: str) -> None:
    """Wrong mathematics is never drawn: each of these came out as something else, without an error."""
    with pytest.raises(DomainError):
        mathml(formula)


@settings(max_examples=200)
@given(st.text(alphabet=r"ab12 \{}_^&+()=<>$%#~lefrightcsum", max_size=40))
def test_any_text_is_drawn_or_refused(formula: str) -> None:
    """Nothing but a ``DomainError`` comes out, and what is drawn is XML."""
    try:
        made = mathml(formula)
    except DomainError:
        return
    Xml.fromstring(made)


PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>t</title>
<style>math {{ font-family: math; font-size: 20px }}</style><body>{}<pre id="found"></pre>
<script>
const box = e => {{ const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height, r.right, r.bottom]; }};
const all = (m, q) => [...m.querySelectorAll(q)].map(e => [e.textContent, ...box(e)]);
document.getElementById("found").textContent = JSON.stringify([...document.querySelectorAll("math")].map(m => (
  {{whole: box(m), mo: all(m, "mo"), mi: all(m, "mi"), mn: all(m, "mn"), mtd: all(m, "mtd"), mtr: all(m, "mtr"),
    frac: [...m.querySelectorAll("mfrac")].map(f => [box(f.children[0]), box(f.children[1])]),
    cells: [...m.querySelectorAll("mtd")].map(c => box(c.firstElementChild))}})));
</script>"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Boxes of the parts of a few formulas, as Chromium draws them."""
    if BROWSER is None:
        if os.environ.get("CI"):
            pytest.fail("CI draws formulas in Chromium, and there is none; apt-get install chromium")
        pytest.skip("no Chromium on this machine")
    folder: Path = tmp_path_factory.mktemp("browser")
    formulas = (
        r"\left\lceil \frac{N_q}{B_r} \right\rceil",
        r"\left(\sum_{i=0}^{3} i\right)",
        r"\begin{cases} 1 & \text{if } a \le b \\ 2222222222 & \text{otherwise} \end{cases}",
        r"x \mathrm{B}",
        *(latex(form) for form in engine_forms()[:40]),
    )
    page = folder / "page.html"
    page.write_text(PAGE.format("".join(f"<p>{mathml(f, display=True)}</p>" for f in formulas)), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    ran = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=90, check=False
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', ran.stdout, flags=re.DOTALL)
    assert found, ran.stderr[-800:]
    boxes: list[dict[str, Any]] = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert len(boxes) == len(formulas)
    return boxes


def test_chromium_draws_every_formula(drawn: list[dict[str, Any]]) -> None:
    """Each has a box, and in each fraction the numerator stands above the denominator."""
    for formula in drawn:
        assert min(formula["whole"][2:4]) > 2
        for above, below in formula["frac"]:
            assert above[5] <= below[1] + 1


def test_chromium_stretches_brackets_to_what_they_hold(drawn: list[dict[str, Any]]) -> None:
    """The ceiling is as tall as its fraction, taller than a letter."""
    ceiling = next(m for m in drawn[0]["mo"] if m[0] == "⌈")
    letter = next(m for m in drawn[0]["mi"] if m[0] == "N")
    assert ceiling[4] > 1.5 * letter[4]


def test_chromium_puts_limits_under_and_over_the_sum(drawn: list[dict[str, Any]]) -> None:
    """Inside brackets too."""
    sign = next(m for m in drawn[1]["mo"] if m[0] == "∑")
    low, high = (next(m for m in drawn[1]["mn"] if m[0] == digit) for digit in "03")
    assert low[2] > sign[2] + sign[4] / 2
    assert high[2] < sign[2] + sign[4] / 2
    assert high[1] < sign[5]
    assert low[1] < sign[5]


def test_chromium_aligns_cases_to_the_left(drawn: list[dict[str, Any]]) -> None:
    """Amounts of different width begin at one line."""
    lefts = [box[0] for box in drawn[2]["cells"]]
    assert abs(lefts[0] - lefts[2]) < 1
    assert abs(lefts[1] - lefts[3]) < 6  # a no-break space begins neither

from __future__ import annotations

import json
import random
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
from hypothesis import given, settings

from derive.errors import DeriveError
from derive.exact import Number, value
from derive.met_blocks import COUNTS, Listed, Met
from derive.symbols import MEANINGS, B_c, B_r, C_b, N_k, N_q
from outputs.javascript_form import javascript_form, javascript_program
from tests.outputs.browser import show
from tests.outputs.expressions import INDEX, engine_forms, forms, values

ARITHMETIC = (files("outputs.report") / "arithmetic.js").read_text(encoding="utf-8")
RUN = """
const text = x => typeof x === "boolean" ? String(+x) : `${top(x)}/${bottom(x)}`;
const number = t => { const [p, q] = t.split("/"); return ratio(BigInt(p), BigInt(q ?? 1)); };
const found = Object.entries(points).map(([key, at]) => {
  try { return [key, text(evaluate(key, Object.fromEntries(Object.entries(at).map(([n, t]) => [n, number(t)]))))]; }
  catch (error) { return [key, error.message]; }
});
document.getElementById("found").textContent = JSON.stringify(Object.fromEntries(found));
"""


def run(folder: Path, asked: dict[str, tuple[Any, dict[str, Number]]], arithmetic: str = ARITHMETIC) -> dict[str, str]:
    """Each form at its values, computed by the script in a browser."""
    program = javascript_program({key: form for key, (form, _) in asked.items()})
    points = json.dumps({key: {n: str(v) for n, v in at.items()} for key, (_, at) in asked.items()})
    script = f"{{ {arithmetic}\n{program}\nconst points = {points};\n{RUN} }}"
    page = f'<!DOCTYPE html><meta charset="utf-8"><title>t</title><pre id="found"></pre><script>{script}</script>'
    shown = show(folder, page)
    assert not shown.console
    found: dict[str, str] = json.loads(shown.text_of("found"))
    return found


def wrong(folder: Path, asked: dict[str, tuple[Any, dict[str, Number]]], arithmetic: str = ARITHMETIC) -> list[str]:
    """The forms whose value in the browser is not the exact one."""
    expected: dict[str, Number] = {}
    for key, (form, at) in asked.items():
        try:
            expected[key] = value(form, at)
        except DeriveError:  # divides by zero, or holds in no case
            continue
    found = run(folder, {key: asked[key] for key in expected}, arithmetic)
    return [key for key, exact in expected.items() if Fraction(found[key]) != exact]


def engine_points() -> dict[str, tuple[Any, dict[str, Number]]]:
    """Every form of the engine at a point on no tile's multiple, narrow types and shares among the values."""
    at: dict[str, Number] = {name: 3 + 7 * n % 41 for n, name in enumerate(MEANINGS)}
    at |= {
        "N": 77,
        "N_q": 61,
        "N_k": 77,
        "B_r": 8,
        "B_c": 6,
        "h": 12,
        "h_k": 4,
        "s": Fraction(1, 3),
        "b": Fraction(1, 2),
    }
    at |= {"b_s": Fraction(33, 32), "C_L2": 9000}
    return {str(n): (form, at) for n, form in enumerate(engine_forms())}


def test_listed_blocks_are_looked_up_alike(tmp_path: Path) -> None:
    """Whatever the tiles, ragged ones and blocks beside them; a row may keep nothing."""
    draw = random.Random(7)
    asked: dict[str, tuple[Any, dict[str, Number]]] = {}
    for n in range(60):
        down, across, block = draw.randint(1, 5), draw.randint(1, 5), draw.randint(1, 6)
        kept = tuple(tuple(draw.sample(range(across), draw.randint(0, across))) for _ in range(down))
        form = Met(sp.Integer(n % len(COUNTS)), N_q, N_k, B_r, B_c, C_b, C_b, Listed(kept))
        at: dict[str, Number] = {
            "N_q": down * block - draw.randrange(block),
            "N_k": across * block - draw.randrange(block),
        }
        asked[str(n)] = (form, at | {"B_r": draw.randint(1, 9), "B_c": draw.randint(1, 9), "C_b": block})
    assert not wrong(tmp_path, asked)
    assert wrong(
        tmp_path, asked, ARITHMETIC.replace("(bottom + 1n) * rowBlock / rowTile", "(bottom + 2n) * rowBlock / rowTile")
    )


def test_every_form_of_the_engine_keeps_its_value(tmp_path: Path) -> None:
    """All variants, schedules and masks with every kind of bound: exactly, not to some digits."""
    asked = engine_points()
    assert len(asked) > 500
    assert wrong(tmp_path, asked) == []


def test_every_kind_of_node_keeps_its_value(tmp_path: Path) -> None:
    """Random forms, drawn first and computed in one page; equal parts of different forms are shared."""
    drawn: dict[str, tuple[Any, dict[str, Number]]] = {}

    @settings(max_examples=300)
    @given(forms, values)
    def draw(form: Any, at: dict[str, Number]) -> None:
        drawn[str(len(drawn))] = (form, at)

    draw()
    assert wrong(tmp_path, drawn) == []


def test_a_wrong_ceiling_is_noticed(tmp_path: Path) -> None:
    """The comparison is alive: a ceiling that rounds down is found in many forms."""
    broken = ARITHMETIC.replace("const ceil = (a, b) => -floor(", "const ceil = (a, b) => floor(a, b) || -floor(")
    assert broken != ARITHMETIC
    assert len(wrong(tmp_path, engine_points(), broken)) > 50


def test_numbers_beyond_2_to_the_53_are_exact(tmp_path: Path) -> None:
    """A float would round the ceiling of (2^60 + 1)/128 and lose the last digits of the product."""
    n = 2**60 + 1
    form = N_k**2 * sp.ceiling(N_k / B_r)
    found = run(tmp_path, {"form": (form, {"N_k": n, "B_r": 128})})
    assert Fraction(found["form"]) == n**2 * -(-n // 128)


def test_a_sum_is_a_loop_and_a_long_one_is_refused(tmp_path: Path) -> None:
    """Never dropped; and a page does not hang on one of a million terms."""
    total = sp.Sum(INDEX * N_k, (INDEX, 0, N_k - 1))
    assert javascript_form(total) == "sum(0n, add(-1n, v.N_k), $i => mul($i, v.N_k))"
    found = run(tmp_path, {"short": (total, {"N_k": 1000}), "long": (total, {"N_k": 10**6})})
    assert Fraction(found["short"]) == 1000 * 1000 * 999 // 2
    assert "too long for this page" in found["long"]


def test_equal_parts_have_one_place_and_sums_keep_their_index() -> None:
    """What two forms share is printed once, unless it depends on the index of a sum around it."""
    shared = sp.ceiling(N_k / 128)
    inside = sp.ceiling((N_k + INDEX) / B_r)
    program = javascript_program({"a": 2 * shared, "b": 3 * shared, "c": sp.Sum(inside + inside**2, (INDEX, 0, 3))})
    assert program.count("ceil(v.N_k, 128n)") == 1
    assert program.count("v(0)") == 2
    assert "$i => add(ceil(add($i, v.N_k), v.B_r), power(ceil(add($i, v.N_k), v.B_r), 2))" in program


def test_what_is_not_exact_has_no_javascript_form() -> None:
    """A root or a float is refused, not rounded."""
    with pytest.raises(TypeError, match="the power 1/2 is not whole"):
        javascript_form(sp.sqrt(N_k))
    with pytest.raises(TypeError, match="no exact JavaScript form"):
        javascript_form(sp.Float("1.5"))

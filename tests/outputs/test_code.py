from __future__ import annotations

import ast
import json
import math
import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
from hypothesis import given, settings

from derive.attention import variant
from derive.errors import DeriveError
from derive.exact import value
from derive.symbols import N_k
from outputs.explanation import Explanation
from outputs.notation import put
from outputs.program import module, quantities
from outputs.python_form import HELPERS, python_form
from outputs.request import read_request
from tests.outputs.command import derive
from tests.outputs.expressions import MASKS, forms, values
from tests.strategies import ATTENTION

RUN = """
import json, sys
from fractions import Fraction
import written
for name, at in json.load(sys.stdin):
    print(getattr(written, name)(**{k: Fraction(v) if "/" in v else int(v) for k, v in at.items()}))
"""


def answer(*words: str, name: str = "mha", schedules: tuple[str, ...]) -> Explanation:
    """What ``derive code NAME WORDS...`` writes down."""
    return Explanation(read_request(variant(name), words), schedules)


def run(folder: Path, text: str, calls: list[tuple[str, dict[str, str]]]) -> list[Fraction]:
    """The results of *calls* of the module *text*, in a process that cannot import this project."""
    (folder / "written.py").write_text(text, encoding="utf-8")
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n{RUN}"
    command = [sys.executable, "-I", "-S", "-c", program]
    ran = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [Fraction(line) for line in ran.stdout.split()]


def points(explanation: Explanation, draws: int, seed: int) -> list[tuple[str, dict[str, str], Any]]:
    """Calls at random points, on and off the tiles' multiples, each with the engine's value."""
    drawn = random.Random(seed)
    found = []
    for account in explanation.accounts:
        for name, (_, amount) in quantities(account).items():
            shown = put(amount, explanation.shown)
            for _ in range(draws):
                kv_heads = drawn.randint(1, 4)
                heads = {"h_k": kv_heads, "h": kv_heads * drawn.randint(1, 3)}
                at: dict[str, Any] = {s.name: drawn.choice((1, 2, 7, 64, 100)) for s in shown.free_symbols}
                at |= {n: drawn.choice((1, 64, 100, 777, 4096)) for n in ("N", "N_q", "N_k") if n in at}
                at |= {n: drawn.choice((1, 5000, 10**6, 10**9)) for n in ("C_L2",) if n in at}
                at |= {n: heads[n] for n in heads if n in at}
                at |= {n: drawn.choice((Fraction(1, 2), 1, Fraction(33, 32), 2)) for n in at if n.split("_")[0] == "b"}
                call = {n: str(v) if Fraction(v).denominator > 1 else str(int(v)) for n, v in at.items()}
                found.append((f"{account.name.replace('-', '_')}_{name}", call, value(shown, at)))
    return found


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ATTENTION)
def test_the_module_computes_what_the_engine_does(name: str, mask: str, tmp_path: Path) -> None:
    """Every quantity of every schedule, at random points, exactly, in a process of its own."""
    opened = ["h=?"] if "h" in {s.name for s in variant(name).symbols} else []
    explanation = answer(f"mask={mask}", *opened, name=name, schedules=("naive", "flash1", "flash2"))
    expected = points(explanation, 6, seed=len(name) + len(mask))
    found = run(tmp_path, module(explanation, ""), [(n, at) for n, at, _ in expected])
    assert len(found) == len(expected) > 100
    for got, (function, at, exact) in zip(found, expected, strict=True):
        assert got == exact, (function, at)


def test_numbers_beyond_every_machine_word_are_exact(tmp_path: Path) -> None:
    """N = 2^60 + 1: a float would round the ceiling, an int64 would wrap."""
    n = 2**60 + 1
    text = module(answer(schedules=("flash2",)), "")
    found = run(tmp_path, text, [("flash2_sm_bytes", {"N": str(n), "d": "128", "B_r": "128", "b": "2"})])
    assert found == [2 * n * 128 * 2 * (1 + -(-n // 128))]


def test_the_module_needs_nothing_and_evaluates_nothing() -> None:
    """No import beyond the standard library's exact numbers; no call but of its own functions and exact built-ins."""
    plain = ast.parse(module(answer(name="gqa", schedules=("naive", "flash1", "flash2")), ""))
    imported = {n.module for n in ast.walk(plain) if isinstance(n, ast.ImportFrom)}
    imported |= {a.name for n in ast.walk(plain) if isinstance(n, ast.Import) for a in n.names}
    assert imported <= {"__future__", "collections.abc", "fractions", "math"}
    called = {n.func.id for n in ast.walk(plain) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    own = {n.name for n in plain.body if isinstance(n, ast.FunctionDef)}
    assert called - own <= {"Fraction", "min", "max", "range", "int", "gcd", "type", "zip", "ValueError"}
    assert not [n for n in ast.walk(plain) if isinstance(n, ast.Constant) and isinstance(n.value, float)]


@pytest.mark.parametrize("words", [(), ("N=8192", "d=128", "dtype=mxfp4"), ("mask=causal", "h=8", "hk=2", "kv=fp8")])
def test_its_examples_run_and_its_types_hold(words: tuple[str, ...], tmp_path: Path) -> None:
    """doctest, mypy --strict and ruff, as they come."""
    explanation = answer(*words, name="gqa", schedules=("naive", "flash2", "flash2-packed"))
    target = tmp_path / "gqa_bytes.py"
    target.write_text(module(explanation, "derive code gqa", arrays=True), encoding="utf-8")
    checks = (["doctest", target.name], ["mypy", "--strict", target.name], ["ruff", "check", "--isolated", target.name])
    for check in checks:
        command = [sys.executable, "-m", *check]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert target.read_text(encoding="utf-8").count(">>> ") >= 20


def test_the_example_of_a_given_question_is_its_answer() -> None:
    """At the seed's numbers the docstring shows 260 MiB."""
    text = module(answer("N=8192", "d=128", schedules=("flash2",)), "")
    assert ">>> flash2_sm_bytes(N=8192, d=128, B_r=128)\n    272629760\n" in text


def test_arrays_do_not_overflow(tmp_path: Path) -> None:
    """At N = 2^22 an int64 product of the FLOP of many heads comes out as 0; here it is exact. Floats are refused."""
    text = module(answer("h=?", schedules=("naive",)), "", arrays=True)
    (tmp_path / "written.py").write_text(text, encoding="utf-8")
    program = (
        "import numpy as np, written\n"
        "n = np.array([2**20, 2**22], dtype=np.int64)\n"
        "print(*written.over(written.naive_matmul_flop, N=n, d=128, h=[[8192], [1]]).ravel())\n"
        "try: written.over(written.naive_matmul_flop, N=np.array([1.5]), d=1, h=1)\n"
        "except ValueError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    numbers, refusal = ran.stdout.splitlines()
    assert [int(n) for n in numbers.split()] == [4 * n**2 * 128 * h for h in (8192, 1) for n in (2**20, 2**22)]
    assert refusal == "N has dtype float64; sizes are whole numbers"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("flash2_sm_bytes(N=0, d=1, h=2, B_r=1)", "N=0 is no size"),
        ("flash2_sm_bytes(N=1.5, d=1, h=2, B_r=1)", "N=1.5 is no size"),
        ("flash2_sm_bytes(N=True, d=1, h=2, B_r=1)", "N=True is no size"),
        ("flash2_sm_bytes(N=8, d=1, h=2, B_r=1, b=0.5)", "b=0.5 is not exact"),
        ("flash2_compulsory_bytes(N=8, d=1, h=3, h_k=2)", "h_k=2 does not divide h=3"),
    ],
)
def test_the_module_refuses_what_no_form_holds_for(call: str, says: str, tmp_path: Path) -> None:
    """Floats, zero and heads that do not divide: a sentence with the value shown."""
    text = module(answer("h=?", "hk=?", name="gqa", schedules=("flash2",)), "")
    (tmp_path / "written.py").write_text(text, encoding="utf-8")
    program = f"from written import *\ntry: {call}\nexcept ValueError as error: print(error)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert says in ran.stdout, ran.stderr


@settings(max_examples=400)
@given(forms, values)
def test_every_kind_of_node_keeps_its_value(form: Any, at: dict[str, int]) -> None:
    """Random forms in Python, run with the module's own helpers."""
    try:
        expected = value(form, at)
    except DeriveError:
        return
    scope: dict[str, Any] = {"Fraction": Fraction, "gcd": math.gcd}
    exec("from __future__ import annotations\n" + HELPERS, scope)
    assert eval(python_form(form), scope | at) == expected


def test_what_is_not_exact_has_no_python_form() -> None:
    """A root is refused, not rounded."""
    with pytest.raises(TypeError, match="the power 1/2 is not whole"):
        python_form(sp.sqrt(N_k))
    with pytest.raises(TypeError, match="no exact Python form"):
        python_form(sp.Float("1.5"))


def test_the_command_writes_one_file_and_keeps_another(tmp_path: Path) -> None:
    """The same bytes each time; a file that exists is kept unless forced."""
    target = tmp_path / "mha_bytes.py"
    first = derive("code", "mha", "-o", str(target))
    assert (first.code, first.out) == (0, "")
    text = target.read_text(encoding="utf-8")
    again = derive("code", "mha", "-o", str(target))
    assert again.code == 2
    assert "exists; add --force" in again.err
    assert derive("code", "mha", "-o", str(target), "--force").code == 0
    assert target.read_text(encoding="utf-8") == text
    assert os.listdir(tmp_path) == ["mha_bytes.py"]
    bad = derive("code", "mha", "-o", str(tmp_path / "no-module.py"))
    assert bad.code == 2
    assert "which Python can import" in bad.err

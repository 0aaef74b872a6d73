"""Rules about the code itself: who may import whom, tables without gaps, names without special cases."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import derive
from derive import denote, execute, flops, operators
from derive.attention import MODULES as VARIANTS
from derive.attention import names as variant_names
from derive.attention import variant
from derive.einsum import Map, Reduce
from rules.catalogue import ALL
from rules.derivations import MODULES as SCHEDULES
from rules.derivations import names as schedule_names
from rules.derivations import plan

ROOT = Path(derive.__file__).parents[1]
PACKAGES = ("derive", "rules", "hardware", "outputs")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
LONGEST = 350
"""Lines of a file of the library: what a reader takes in at one sitting."""

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


def test_packages_import_only_what_stands_below_them() -> None:
    """The layers and the witnesses' independence, as the project file states them."""
    pytest.importorskip("importlinter")
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 broken" in ran.stdout


def test_every_operator_has_every_meaning() -> None:
    """Values, expressions, work and streaming each have a line for each operator."""
    for table in (operators.MAPS, denote.MAPS, flops._MAP_OPERATIONS):
        assert set(table) == set(Map)
    for table in (operators.REDUCES, denote.TERMS, denote.RANGES, flops._REDUCE_PIPE, execute.UNIT):
        assert set(table) == set(Reduce)


@pytest.mark.parametrize("module", sorted({rule.rewrite.__module__ for rule in ALL}))
def test_every_rule_has_a_test_file(module: str) -> None:
    """Its effect, with exact costs, is tested in the file of its name."""
    assert (ROOT / "tests" / "rules" / f"test_{module.rpartition('.')[2]}.py").is_file()


def test_every_rule_file_is_in_the_catalogue() -> None:
    """A rule that nobody lists is tested by nobody."""
    files = {path.stem for kind in ("algebra", "schedule") for path in (ROOT / "rules" / kind).glob("[!_]*.py")}
    assert files - {"examples"} == {rule.rewrite.__module__.rpartition(".")[2] for rule in ALL}


def test_every_variant_is_named_like_its_file() -> None:
    """The registry lists each file of the folder once."""
    assert {path.stem for path in (ROOT / "derive" / "attention").glob("[!_]*.py")} == set(VARIANTS)
    assert len(set(VARIANTS)) == len(VARIANTS)
    for module in VARIANTS:
        found = import_module(f"derive.attention.{module}").VARIANT
        assert found.name == module.replace("_", "-")
        assert variant(found.name) is found


def test_every_schedule_is_named_like_its_file() -> None:
    """The registry lists each file of the folder once."""
    assert {path.stem for path in (ROOT / "rules" / "derivations").glob("[!_]*.py")} == set(SCHEDULES)
    assert len(set(SCHEDULES)) == len(SCHEDULES)
    for module in SCHEDULES:
        found = import_module(f"rules.derivations.{module}").PLAN
        assert found.name == module.replace("_", "-")
        assert plan(found.name) is found


@every_file
def test_no_variant_and_no_schedule_is_a_special_case(path: Path) -> None:
    """Their names are data: no code compares anything to one, or looks one up in a written list."""
    names = {*variant_names(), *schedule_names()}
    for node in ast.walk(TREES[path]):
        compared: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            compared = [node]
        elif isinstance(node, ast.match_case):
            compared = [node.pattern]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            compared = [*node.args] if node.func.attr in ("startswith", "endswith") else []
        words = {c.value for part in compared for c in ast.walk(part) if isinstance(c, ast.Constant)}
        assert not words & names, f"line {getattr(node, 'lineno', '?')} compares to {words & names}"


@every_file
def test_no_text_is_run_as_code(path: Path) -> None:
    """What a person types is parsed, never evaluated: SymPy's own parser runs Python too."""
    forbidden = {"eval", "exec", "sympify", "parse_expr", "compile", "__import__"}
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            of = (
                function.value.id
                if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
                else ""
            )
            assert name not in forbidden or (of, name) == ("re", "compile"), f"line {node.lineno} calls {name}"


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    """Arrays, graph algorithms and random testing are loaded by the commands that need them."""
    program = (
        "import sys, outputs.cli; print([m for m in ('numpy', 'networkx', 'hypothesis', 'rich') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@every_file
def test_everything_public_is_documented(path: Path) -> None:
    """Modules, classes and functions say what they are in a sentence."""
    assert ast.get_docstring(TREES[path])
    for node in _public(TREES[path]):
        assert ast.get_docstring(node), f"{node.name}, line {node.lineno}"


def _public(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes without an underscore, and those of such classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node)


@every_file
def test_a_file_fits_one_sitting(path: Path) -> None:
    """Fewer than 350 lines; one that needs more wants splitting."""
    assert len(path.read_text(encoding="utf-8").splitlines()) < LONGEST


def test_every_value_is_frozen() -> None:
    """A dataclass of ``derive`` or ``rules`` cannot be changed; a simulated cache is the one exception."""
    changing = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef) or path.relative_to(ROOT).parts[0] not in ("derive", "rules"):
                continue
            for made in node.decorator_list:
                name = ast.unparse(made)
                if "dataclass" in name and "frozen=True" not in name:
                    changing.append(f"{path.stem}.{node.name}")
    assert changing == ["lru._Served"]


def test_every_public_name_is_there() -> None:
    """``from derive import NAME`` finds each name that is listed, and refuses any other with the list."""
    for name in derive.__all__:
        assert getattr(derive, name).__name__
    with pytest.raises(AttributeError, match="derive has no 'flash'; its names are Cost, Einsum"):
        _ = derive.flash


@pytest.mark.parametrize("number", [-3.0, -0.5, 0.25, 2.0])
@pytest.mark.parametrize("map_", [m for m in Map if m in (Map.NEG, Map.EXP, Map.TANH, Map.SIGMOID, Map.RELU, Map.COPY)])
def test_an_operator_means_the_same_in_both_meanings(map_: Map, number: float) -> None:
    """What the expression of an operator is worth is what the interpreter makes of the number."""
    assert float(denote.MAPS[map_](sp.Float(number))) == pytest.approx(
        float(operators.MAPS[map_](None, np.array(number)))
    )

"""Mutants of the library: every small change that cosmic-ray can make, without those that change nothing or cannot run.

Its operators swap ``*`` for ``<<`` as readily as for ``+``; on SymPy's expressions most of these raise at once, so they would
raise the share of mutants killed and tell nothing. Those kept are the slips that a person makes.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cosmic_ray.plugins
from cosmic_ray.ast import get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).parents[2]
PACKAGES = ("derive", "rules")
_SWAPS = {
    "BinaryOperator": "Add_Sub Sub_Add Mul_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul BitOr_BitAnd BitAnd_BitOr",
    "ComparisonOperator": "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_Gt LtE_GtE GtE_LtE Gt_Lt Is_IsNot IsNot_Is",
    "UnaryOperator": "Delete_Not USub_UAdd",
}
OPERATORS = (
    *(f"core/Replace{kind}_{swap}" for kind, swaps in _SWAPS.items() for swap in swaps.split()),
    "core/AddNot",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    "core/NumberReplacer",
    "core/ZeroIterationForLoop",
)
_BINARY = ("arith_expr", "term", "power", "expr", "and_expr")
"""What stands around an operator with two sides, in the grammar that cosmic-ray reads."""
UNSEEN = {
    ("dataclass", "slots"): "a value with slots is as frozen without them, and takes more room",
    ("lru_cache", "maxsize"): "what was forgotten is computed again, to the same value",
    ("zip", "strict"): "an assertion: the values are the same where both are as long, and they always are",
}
"""(function, keyword) whose argument changes no value, and why."""


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        file: what is changed, from the root.
        line: where, counted from 1.
        operator: cosmic-ray's name of the change.
        occurrence: which of the places where it can be made.
    """

    file: str
    line: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        """A short name that says it to this program again."""
        return f"{self.file}:{self.line}:{self.operator.removeprefix('core/')}:{self.occurrence}"

    def source(self, text: str) -> str:
        """*text* of the file with the change made."""
        changed = mutate_code(text, cosmic_ray.plugins.get_operator(self.operator)(), self.occurrence)
        assert changed is not None
        return str(changed)


def mutants_of(file: str, root: Path = ROOT) -> list[Mutant]:
    """Every mutant of *file*, but for what is no change of what it computes, or no Python; see ``_unread``."""
    text = (root / file).read_text(encoding="utf-8")
    tree = get_ast(text)
    nodes = list(_nodes(tree))
    quiet = _unread(ast.parse(text))
    found = []
    for name in OPERATORS:
        operator = cosmic_ray.plugins.get_operator(name)()
        occurrence = 0
        for node in nodes:
            for (line, column), _ in operator.mutation_positions(node):
                mutant = Mutant(file, line, name, occurrence)
                occurrence += 1
                if any(low <= (line, column) < high for low, high in quiet) or _is_a_star(name, node):
                    continue
                if ":=" not in text.splitlines()[line - 1] or _compiles(mutant.source(text)):
                    found.append(mutant)
    return sorted(found, key=lambda m: (m.line, m.operator, m.occurrence))


def sampled(strata: Sequence[Sequence[Mutant]], size: int, seed: int) -> list[Mutant]:
    """About *size* mutants, at least one of every file, else in proportion to how many it has."""
    total = sum(map(len, strata))
    chosen = []
    for mutants in strata:
        dice = random.Random(f"{seed} {mutants[0].file}" if mutants else "")
        share = min(len(mutants), max(1, round(size * len(mutants) / total)))
        chosen += dice.sample(list(mutants), share)
    return sorted(chosen, key=lambda m: (m.file, m.line, m.operator))


def files(root: Path = ROOT) -> list[str]:
    """The files that are mutated, from the root."""
    return sorted(str(p.relative_to(root)) for package in PACKAGES for p in (root / package).rglob("*.py"))


def _nodes(tree: object) -> Iterator[object]:
    """In cosmic-ray's own order, by which it counts occurrences."""
    yield tree
    for child in getattr(tree, "children", ()):
        yield from _nodes(child)


def _is_a_star(operator: str, node: Any) -> bool:
    """Whether cosmic-ray takes a star for a product: one of ``def f(a, *, b)`` or two of ``{**a}``."""
    return "BinaryOperator" in operator and node.parent.type not in _BINARY


def _compiles(text: str) -> bool:
    """``if not x := f()`` does not."""
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _unread(tree: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where no change can show: annotations, which stay text, blocks for type checkers, and ``UNSEEN`` arguments of calls."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            found.append(node.annotation)
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            found.append(node.returns)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found.append(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += [k.value for k in node.keywords if (node.func.id, k.arg) in UNSEEN]
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found]  # type: ignore[attr-defined]

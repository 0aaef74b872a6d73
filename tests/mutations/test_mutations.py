"""That breaking the library is noticed: a few mutations, each made in a copy of the tree, whose tests must then fail."""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from patching import changes, put
from run import ROOT, Mutation, copied, mutations, passes, survives

NOTICED = {
    "floor_sum: slope term": "tests/derive/test_exact.py",
    "pairs: the triangle": "tests/derive/test_mask.py",
    "a multiply-add is one FLOP": "tests/derive/test_flops.py",
    "reductions are never waited for": "tests/derive/test_passes.py",
    "tiles as large as the problem": "tests/derive/test_footprint.py",
    "the outermost loop decides what streams": "tests/derive/test_staging.py",
    "multiplies by l": "tests/rules/test_defer_division.py",
    "shifts by the sum": "tests/rules/test_split_softmax.py",
    "launched loops lose the grid": "tests/rules/test_launch.py",
    "zero is a constant": "tests/hardware/test_machine_refusals.py",
}
"""By what is broken, the file that notices it alone."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which all these tests pass."""
    made = copied(tmp_path_factory.mktemp("mutated") / "tree")
    assert passes(made, tuple(NOTICED.values()))
    return made


def test_each_mutation_can_be_made() -> None:
    """Its text stands in its file exactly once: code that was rewritten takes its mutations with it."""
    for mutation in mutations():
        assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1, mutation


@pytest.mark.parametrize("breaks", NOTICED)
def test_a_broken_library_fails_its_tests(breaks: str, tree: Path) -> None:
    """One place is broken, and the file of tests named for it fails."""
    (found,) = (m for m in mutations() if m.breaks == breaks)
    before = (tree / found.file).read_text(encoding="utf-8")
    assert not survives(Mutation(found.file, found.old, found.new, breaks, (NOTICED[breaks],)), tree)
    assert (tree / found.file).read_text(encoding="utf-8") == before


NO_CHANGE = """
@dataclass(frozen=True, slots=True)
class Value:
    size: int


@lru_cache(maxsize=8)
def joined(first, *, others):
    return {**first, "n": [a for a, b in zip(first, others, strict=True)]}
"""


def test_what_changes_no_value_is_no_mutant(tmp_path: Path) -> None:
    """Room for a value, for what is remembered, an assertion, and stars that are no products; ``frozen`` is one."""
    if not os.environ.get("CI"):
        pytest.importorskip("cosmic_ray", reason="no cosmic-ray on this machine; pip install 'attn-derive[mutate]'")
    from mutants import mutants_of

    (tmp_path / "plain.py").write_text(NO_CHANGE, encoding="utf-8")
    found = mutants_of("plain.py", tmp_path)
    assert [(m.line, m.operator) for m in found] == [(2, "core/ReplaceTrueWithFalse")]
    assert "frozen=False, slots=True" in found[0].source(NO_CHANGE)


LOADED = '''
HALF = 1 / 2


def scaled(n, by=HALF):
    """A closure too."""
    return (lambda: n + by)()


KEPT = (lambda n: n + 1,)
'''


def test_a_change_is_put_into_functions_that_are_frozen_already(tmp_path: Path) -> None:
    """Functions, what they make, and lambdas that a constant holds; a constant itself, or a default, is made on import."""
    path = tmp_path / "loaded.py"
    path.write_text(LOADED, encoding="utf-8")
    spec = spec_from_file_location("loaded", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (module.scaled(1), module.KEPT[0](1)) == (1.5, 2)
    gc.freeze()
    changed = changes(path, LOADED, LOADED.replace("n + by", "n - by").replace("n + 1", "n - 1"))
    assert put(path, changed)
    assert (module.scaled(1), module.KEPT[0](1)) == (0.5, 0)
    assert changes(path, LOADED, LOADED.replace("1 / 2", "1 * 2")) == {}
    assert changes(path, LOADED, LOADED.replace("by=HALF", "by=1")) == {}

"""Break the library in one place at a time and see whether a test notices.

Run from the project's root with ``python tests/mutations/run.py [word ...]``: only mutations that mention a word are
tried when words are given. Each mutation is made in a copy of the tree; exit code 1 when one survives.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from terms import TERMS  # noqa: E402  (the list of mutations stands beside this file)

CONTRACT = "tests/rules/test_every_rule.py"
PACKAGES = ("derive", "rules", "hardware", "outputs", "tests", "pyproject.toml")
LIMIT = 300
"""Seconds a mutant may take; one that loops is killed by that."""


@dataclass(frozen=True)
class Mutation:
    """One change that some test must notice.

    Attributes:
        file: what is changed, from the root.
        old: text that stands there exactly once.
        new: what replaces it.
        breaks: what is wrong then.
        tests: arguments of pytest.
    """

    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]


def clauses() -> Iterator[Mutation]:
    """Each precondition of each rule: made always true, and taken out together with its counterexample."""
    for path in sorted((ROOT / "rules").glob("*/*.py")):
        text, file = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Precondition":
                continue
            source = ast.get_source_segment(text, node)
            assert source is not None
            holds = re.search(r"holds=(\w+)", source)
            assert holds is not None
            always = source.replace(holds[0], "holds=lambda *_: True")
            yield Mutation(file, source, always, f"clause {holds[1]} always true", (CONTRACT,))
            if text.count(source + ",") == 1:  # one of a rule's own list; several rules share another
                gone = (CONTRACT, "-k", "near_the_example")
                yield Mutation(file, source + ",", "", f"clause {holds[1]} deleted (random subjects alone)", gone)


def mutations() -> list[Mutation]:
    """All of them."""
    return [*clauses(), *(Mutation(*term) for term in TERMS)]


def survives(mutation: Mutation, tree: Path) -> bool:
    """Whether all tests pass in *tree* with the mutation made; the file is put back."""
    path = tree / mutation.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        return passes(tree, mutation.tests)
    finally:
        path.write_text(text, encoding="utf-8")


def passes(tree: Path, tests: tuple[str, ...]) -> bool:
    """Whether *tests* pass in *tree*."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    try:
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


def copied(folder: Path) -> Path:
    """A copy of the tree in *folder*."""
    folder.mkdir()
    for name in PACKAGES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def main(words: list[str]) -> int:
    """Try every mutation that mentions one of *words*, or all; print the table."""
    chosen = [m for m in mutations() if not words or any(w in f"{m.file} {m.breaks}" for w in words)]
    for m in chosen:
        if (times := (ROOT / m.file).read_text(encoding="utf-8").count(m.old)) != 1:
            raise SystemExit(f"{m.file}: {m.old!r} stands there {times} times, not once")
    with tempfile.TemporaryDirectory() as folder:
        trees: Queue[Path] = Queue()
        for n in range(os.cpu_count() or 1):
            trees.put(copied(Path(folder) / str(n)))

        def attempt(mutation: Mutation) -> bool:
            tree = trees.get()
            try:
                return survives(mutation, tree)
            finally:
                trees.put(tree)

        def stands(tests: tuple[str, ...]) -> bool:
            tree = trees.get()
            try:
                return passes(tree, tests)
            finally:
                trees.put(tree)

        suites = tuple(dict.fromkeys(m.tests for m in chosen))
        with ThreadPoolExecutor(trees.qsize()) as pool:
            for tests, passed in zip(suites, pool.map(stands, suites), strict=True):
                if not passed:
                    raise SystemExit(f"{' '.join(tests)} fails without any mutation")
        print("| file | what is broken | result |\n|---|---|---|")
        alive = 0
        with ThreadPoolExecutor(trees.qsize()) as pool:
            for mutation, survived in zip(chosen, pool.map(attempt, chosen), strict=True):
                alive += survived
                print(f"| {mutation.file} | {mutation.breaks} | {'SURVIVED' if survived else 'killed'} |", flush=True)
        print(f"\n{len(chosen)} mutations, {len(chosen) - alive} killed, {alive} survived")
    return int(alive > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

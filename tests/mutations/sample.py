"""Mutants of ``derive`` and ``rules``, all or a seeded sample over every file, each tried against the tests that reach it.

    python tests/mutations/sample.py --reach             which test runs which line (coverage), into .mutations/
    python tests/mutations/sample.py --size 300 --seed 0 a sample
    python tests/mutations/sample.py                     all of them: many hours
    python tests/mutations/sample.py --again             the survivors once more, against more tests

Everything happens in a copy of the tree. What is known is kept in ``.mutations/results.jsonl``, so that a run may be stopped
and taken up again. One process; needs ``pip install -e '.[dev,mutate]'``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mutants import ROOT, Mutant, files, mutants_of, sampled
from patching import changes, put
from run import PACKAGES as COPIED
from run import copied

KEPT = ROOT / ".mutations"
RESULTS = KEPT / "results.jsonl"
REACH = KEPT / "reach.sqlite"
TIMES = KEPT / "times.json"
FIRST, AGAIN = (40, 20, 10.0), (400, 10_000, 60.0)
"""Tests a mutant is tried against, examples of each property, and seconds of tests by their usual times; and ``--again``."""
MEMORY = 8 * 2**30
"""Bytes of address space of a mutant that grows without end."""
MEASURED = ("tests/derive", "tests/rules", "tests/laws")


@dataclass(frozen=True)
class Reached:
    """Which tests run which line, and how long each takes.

    Attributes:
        by_line: tests by (file, line).
        seconds: of each test.
    """

    by_line: Mapping[tuple[str, int], frozenset[str]]
    seconds: Mapping[str, float]

    def tests(self, mutant: Mutant, most: int, budget: float) -> list[str]:
        """Tests to try: those named after the file first, then the quickest; *most* of them, *budget* seconds of usual time."""
        found = set(self.by_line.get((mutant.file, mutant.line), frozenset()))
        if not found:  # a line that runs on import
            found = {t for (file, _), tests in self.by_line.items() if file == mutant.file for t in tests}
        name = Path(mutant.file).stem
        if not found:  # a file that is nothing but such lines: tests with its name in theirs
            spelt = re.compile(rf"(?<![a-z0-9]){re.escape(name.replace('_', '-'))}(?![a-z0-9])")
            found = {t for t in self.known if spelt.search(t.replace("_", "-"))}
        own = f"/test_{name}.py"
        left, chosen = budget, []
        for test in sorted(found, key=lambda t: (own not in t, self.seconds.get(t, 1.0), t))[:most]:
            left -= self.seconds.get(test, 1.0)
            if left < 0 and chosen:
                break
            chosen.append(test)
        return chosen

    @cached_property
    def known(self) -> frozenset[str]:
        """Every test."""
        return frozenset(self.seconds).union(*self.by_line.values())


class Fewer:
    """A plugin of pytest: no property tries more than *most* examples."""

    def __init__(self, most: int) -> None:
        self.most = most

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Settings of Hypothesis stand on the function that it wraps."""
        from hypothesis import settings

        for item in items:
            test = getattr(item, "obj", None)
            test = getattr(test, "__func__", test)
            own = getattr(test, "_hypothesis_internal_use_settings", None)
            if own is not None and own.max_examples > self.most:
                test._hypothesis_internal_use_settings = settings(own, max_examples=self.most)


def measure() -> None:
    """Run the tests once under coverage; a few examples of each property reach as much as many."""
    KEPT.mkdir(exist_ok=True)
    settings = KEPT / "coverage.ini"
    settings.write_text(f"[run]\nsource = derive,rules\ndata_file = {REACH}\n", encoding="utf-8")
    environment = {**os.environ, "REACH_TIMES": str(TIMES), "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}"}
    run = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-p", "reach", *MEASURED]
    subprocess.run(run, cwd=ROOT, env=environment, check=True)


def reached() -> Reached:
    """What ``--reach`` wrote."""
    from coverage import CoverageData

    data = CoverageData(basename=str(REACH))
    data.read()
    by_line = {}
    for path in data.measured_files():
        file = path[max(path.rfind("/derive/"), path.rfind("/rules/")) + 1 :]
        for line, tests in data.contexts_by_lineno(path).items():
            by_line[file, line] = frozenset(t for t in tests if t)
    return Reached(by_line, json.loads(TIMES.read_text(encoding="utf-8")))


def attempt(mutant: Mutant, tests: Sequence[str], tree: Path, limit: float, examples: int, *, quick: bool) -> str:
    """``killed``, ``timeout`` (killed too) or ``survived``: *tests* on *tree* with the change made; it is put back."""
    if not tests:
        return "survived"
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8")
    source = mutant.source(text)
    if quick and (changed := changes(path, text, source)):
        result = _judged(tests, tree, limit, examples, lambda: put(path, changed))
        if result != "absent":
            return result
    path.write_text(source, encoding="utf-8")
    forget(path)
    try:
        return _judged(tests, tree, limit, examples, fresh)
    finally:
        path.write_text(text, encoding="utf-8")
        forget(path)


def forget(path: Path) -> None:
    """No compiled form of the file *path* is left."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


def fresh() -> bool:
    """Nothing of the project is loaded."""
    for name in [n for n in sys.modules if n.split(".")[0] in (*COPIED, "attn_derive")]:
        del sys.modules[name]
    return True


def _judged(tests: Sequence[str], tree: Path, limit: float, examples: int, begin: Callable[[], bool]) -> str:
    """In a fork, which has SymPy, NumPy and Hypothesis already, once *begin* has made the change there."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
            os.chdir(tree)
            with open(tree / "log.txt", "w", encoding="utf-8") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                import pytest

                if not begin():
                    os._exit(71)
                code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=[Fewer(examples)]))
        finally:
            os._exit(code)
    end = time.monotonic() + 10 * limit  # the processor's time is bounded; this is for one that sleeps
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", 71: "absent"}.get(code, "timeout" if code < 0 else "killed")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not tried:
        return 0.0, 1.0
    z, share = 1.96, killed / tried
    middle, wide = share + z * z / (2 * tried), z * sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return (middle - wide) / (1 + z * z / tried), (middle + wide) / (1 + z * z / tried)


def known() -> dict[str, str]:
    """The last result of each mutant that was tried."""
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    return {found["mutant"]: found["result"] for found in map(json.loads, lines)}


def main() -> int:
    """Try what is asked for; exit code 1 when a mutant survives."""
    words = argparse.ArgumentParser(description="Mutants of derive and rules against the tests that reach them.")
    words.add_argument("--reach", action="store_true", help="measure which test runs which line, and stop")
    words.add_argument("--size", type=int, help="a sample of about this size; all unless given")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--again", action="store_true", help="survivors only, against ten times the tests")
    words.add_argument("--minutes", type=float, help="stop after this long")
    asked = words.parse_args()
    if asked.reach:
        measure()
        return 0
    strata = [found for file in files() if (found := mutants_of(file))]
    chosen = [m for found in strata for m in found] if asked.size is None else sampled(strata, asked.size, asked.seed)
    before = known()
    todo = [m for m in chosen if (before.get(m.name) == "survived" if asked.again else m.name not in before)]
    reach = reached()
    import hypothesis  # noqa: F401  (imported once, before forks)
    import networkx  # noqa: F401
    import numpy  # noqa: F401
    import pytest
    import sympy  # noqa: F401

    end = time.monotonic() + 60 * (asked.minutes or 1e6)
    with tempfile.TemporaryDirectory() as folder, open(RESULTS, "a", encoding="utf-8") as results:
        tree = copied(Path(folder) / "tree")
        sys.path.insert(0, str(tree))
        os.chdir(tree)
        if not asked.again:
            tests = sorted({t.split("::")[0] for m in todo for t in reach.tests(m, *FIRST[::2])})
            pytest.main(["-qq", "--collect-only", "--no-summary", "-p", "no:cacheprovider", *tests])  # loads them
            gc.freeze()
        for n, mutant in enumerate(todo, start=1):
            if time.monotonic() > end:
                break
            most, examples, budget = AGAIN if asked.again else FIRST
            tests = reach.tests(mutant, most, budget)
            usual = sum(reach.seconds.get(t, 1.0) for t in tests)
            begun = time.monotonic()
            result = attempt(
                mutant, tests, tree, 20 + 3 * usual * (4 if asked.again else 1), examples, quick=not asked.again
            )
            took = round(time.monotonic() - begun, 1)
            results.write(
                json.dumps({"mutant": mutant.name, "result": result, "tests": len(tests), "seconds": took}) + "\n"
            )
            results.flush()
            print(f"{n}/{len(todo)} {mutant.name} {result} ({len(tests)} tests, {took} s)", flush=True)
    now = known()
    tried = [now[m.name] for m in chosen if m.name in now]
    killed = sum(result != "survived" for result in tried)
    low, high = interval(killed, len(tried))
    print(f"{len(tried)} mutants tried of {sum(map(len, strata))}, {killed} killed: "
          f"{killed / max(1, len(tried)):.1%}, 95 % between {low:.1%} and {high:.1%}")  # fmt: skip
    for mutant in chosen:
        if now.get(mutant.name) == "survived":
            print(f"survived: {mutant.name}")
    return int(killed < len(tried))


if __name__ == "__main__":
    raise SystemExit(main())

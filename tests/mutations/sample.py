"""Mutants of ``derive`` and ``rules``, all or a seeded sample over every file, each tried against the tests that reach it.

    python tests/mutations/sample.py --reach             which test runs which line (coverage), into .mutations/
    python tests/mutations/sample.py --reach laws rules  the same of these folders of tests alone
    python tests/mutations/sample.py --size 300 --seed 0 a sample
    python tests/mutations/sample.py                     all of them: many hours
    python tests/mutations/sample.py --again             the survivors once more, against more tests
    python tests/mutations/sample.py --part 1/2          every second of what is asked for, beside a process with 2/2

Everything happens in a copy of the tree. What is known is kept in ``.mutations/results.jsonl``, so that a run may be stopped
and taken up again. Needs ``pip install -e '.[dev]'``.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import sqrt
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mutants import ROOT, Mutant, files, mutants_of, sampled
from patching import changes, put
from run import PACKAGES as COPIED
from run import copied

KEPT = ROOT / ".mutations"
RESULTS = KEPT / "results.jsonl"
MEASURED = ("derive", "rules", "published", "outputs", "laws", "test_architecture.py")
"""Tests that may be tried, each folder measured in a run of its own."""
MEMORY = 8 * 2**30
"""Bytes of address space of a mutant that grows without end."""


@dataclass(frozen=True)
class Effort:
    """How hard a mutant is tried.

    Attributes:
        tests: at most so many of those that reach it.
        examples: of each property.
        seconds: of tests, by their usual times.
        loaded: whether the change is put into a process that has the library, where that can be done.
    """

    tests: int
    examples: int
    seconds: float
    loaded: bool


FIRST = Effort(tests=40, examples=8, seconds=4.0, loaded=True)
AGAIN = Effort(tests=400, examples=60, seconds=20.0, loaded=False)


@dataclass(frozen=True)
class Reached:
    """Which tests run which line, and how long each takes.

    Attributes:
        by_line: tests by (file, line).
        seconds: of each test that passes.
    """

    by_line: Mapping[tuple[str, int], frozenset[str]]
    seconds: Mapping[str, float]

    def tests(self, mutant: Mutant, effort: Effort) -> list[str]:
        """Tests to try: one of each function before a second of any, the quickest first, those named after the file before."""
        found = set(self.by_line.get((mutant.file, mutant.line), frozenset()))
        name = Path(mutant.file).stem
        if on_import(mutant.file, mutant.line):
            found |= {t for (file, _), tests in self.by_line.items() if file == mutant.file for t in tests}
            found |= {t for t in self.seconds if name in named(t.split("::")[0])}
            found |= {t for t in self.seconds if name.replace("_", "-") in t or "test_architecture" in t}
        own = (f"/test_{name}.py", f"[{name.replace('_', '-')}]")

        def rank(test: str) -> tuple[float, str]:
            return (self.seconds[test] + 0.01) / (5 if any(word in test for word in own) else 1), test

        turns: dict[str, int] = {}
        order = []
        for test in sorted(found & set(self.seconds), key=rank):
            function = test.split("[")[0]
            turns[function] = turns.get(function, -1) + 1
            rules_of_code = "test_architecture" in test  # they read every file
            order.append((turns[function] - rules_of_code, rank(test), test))
        left: float = effort.seconds
        chosen: list[str] = []
        for _, _, test in sorted(order):
            if self.seconds[test] <= left and len(chosen) < effort.tests:
                left -= self.seconds[test]
                chosen.append(test)
        return chosen


@cache
def on_import(file: str, line: int) -> bool:
    """Whether the module's own body runs *line*: which test runs it says only which was the first to import the module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    bodies = [n for n in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))) if isinstance(n, functions)]
    inner = [(b.body[0] if isinstance(b.body, list) else b.body, b) for b in bodies]
    return not any(first.lineno <= line <= (body.end_lineno or line) for first, body in inner)


@cache
def named(file: str) -> frozenset[str]:
    """The words of a file of tests: one that says a module's name may test what it makes on import."""
    path = ROOT / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return frozenset(re.findall(r"\w+", text.replace("-", "_")))


class Fewer:
    """A plugin of pytest: no property tries more than *most* examples, nor makes a failing one small."""

    def __init__(self, most: int) -> None:
        self.most = most

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Settings of Hypothesis stand on the function that it wraps."""
        from hypothesis import Phase, settings

        for item in items:
            test = getattr(item, "obj", None)
            test = getattr(test, "__func__", test)
            own = getattr(test, "_hypothesis_internal_use_settings", None)
            if own is not None:
                few = settings(
                    own,
                    max_examples=min(own.max_examples, self.most),
                    phases=(Phase.explicit, Phase.generate),
                    database=None,
                    report_multiple_bugs=False,
                )
                test._hypothesis_internal_use_settings = few


class Watched:
    """A plugin of pytest: writes down the tests that begin, with the time so far, and that fail; none runs on for ever."""

    def __init__(self, log: Path, limits: Mapping[str, float]) -> None:
        self.log = log
        self.limits = limits

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """The time is the processor's."""
        self._write("begins", nodeid)
        signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, self.limits.get(nodeid, 60.0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """The setup of a test may fail too."""
        if report.failed:
            self._write("fails", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """A module of tests that cannot be loaded fails every test in it."""
        if report.failed:
            self._write("breaks", report.nodeid)

    def _write(self, what: str, test: str) -> None:
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(json.dumps([what, test, time.process_time()]) + "\n")


def _too_long(_: int, __: FrameType | None) -> None:
    raise TimeoutError("a mutant that does not end")


def measure(groups: Sequence[str]) -> None:
    """Run *groups* of tests once under coverage in a copy of the tree; a few examples of a property reach as much as many."""
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder) / "tree")
        for group in groups:
            settings, times = KEPT / f"cov-{Path(group).stem}.ini", KEPT / f"times-{Path(group).stem}.json"
            data = KEPT / f"reach-{Path(group).stem}.sqlite"
            settings.write_text(f"[run]\nsource = derive,rules\ndata_file = {data}\n", encoding="utf-8")
            path = f"{tree}{os.pathsep}{tree / 'tests/mutations'}"
            environment = {**os.environ, "REACH_TIMES": str(times), "PYTHONPATH": path}
            run = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}"]
            run += ["-m", "pytest", "-p", "no:cacheprovider", "-p", "reach", f"tests/{group}"]
            subprocess.run(run, cwd=tree, env=environment, check=False)  # a test that fails there is not tried


def reached() -> Reached:
    """What ``--reach`` wrote."""
    from coverage import CoverageData

    by_line: dict[tuple[str, int], frozenset[str]] = {}
    seconds: dict[str, float] = {}
    for times in sorted(KEPT.glob("times-*.json")):
        seconds |= json.loads(times.read_text(encoding="utf-8"))
        data = CoverageData(basename=str(times.with_name(times.name.replace("times", "reach")).with_suffix(".sqlite")))
        data.read()
        for path in data.measured_files():
            file = path[max(path.rfind("/derive/"), path.rfind("/rules/")) + 1 :]
            for line, tests in data.contexts_by_lineno(path).items():
                by_line[file, line] = by_line.get((file, line), frozenset()) | {t for t in tests if t}
    return Reached(by_line, seconds)


@dataclass
class Trial:
    """Mutants tried in one copy of the tree.

    Attributes:
        tree: the copy.
        reach: what is known of the tests.
        stood: whether a test passes with nothing changed, by its name and how hard it was tried.
    """

    tree: Path
    reach: Reached
    stood: dict[tuple[str, Effort], bool] = field(default_factory=dict)

    def attempt(self, mutant: Mutant, effort: Effort) -> dict[str, object]:
        """``killed`` or ``survived``, by which test and of how many; a test that fails without the change kills nothing."""
        while True:
            tests = [t for t in self.reach.tests(mutant, effort) if self.stood.get((t, effort), True)]
            result, by = self._tried(mutant, tests, effort) if tests else ("survived", "")
            if result == "survived" or not by or self._stands(by, effort):
                return {"result": result, "by": by, "tests": len(tests)}

    def _stands(self, test: str, effort: Effort) -> bool:
        """Whether *test* passes with nothing changed."""
        if (test, effort) not in self.stood:
            result, _ = self._judged([test], effort, lambda: True if effort.loaded else fresh())
            self.stood[test, effort] = result == "survived"
        return self.stood[test, effort]

    def _tried(self, mutant: Mutant, tests: Sequence[str], effort: Effort) -> tuple[str, str]:
        """*tests* with the change made; it is put back."""
        path = self.tree / mutant.file
        text = path.read_text(encoding="utf-8")
        source = mutant.source(text)
        if effort.loaded and (changed := changes(path, text, source)):
            result = self._judged(tests, effort, lambda: put(path, changed))
            if result[0] != "absent":
                return result
        path.write_text(source, encoding="utf-8")
        forget(path)
        try:
            return self._judged(tests, effort, fresh)
        finally:
            path.write_text(text, encoding="utf-8")
            forget(path)

    def _judged(self, tests: Sequence[str], effort: Effort, begin: Callable[[], bool]) -> tuple[str, str]:
        """In a fork, which has SymPy, NumPy and Hypothesis already, once *begin* has made the change there."""
        log = self.tree / "watched.jsonl"
        log.write_text("", encoding="utf-8")
        usual = {t: self.reach.seconds.get(t, 1.0) * max(1.0, effort.examples / 4) for t in tests}
        limits = {t: 10 + 5 * seconds for t, seconds in usual.items()}
        limit = 30 + 2 * sum(usual.values()) + max(limits.values())
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
                os.chdir(self.tree)
                with open(self.tree / "log.txt", "w", encoding="utf-8") as out:
                    os.dup2(out.fileno(), 1)
                    os.dup2(out.fileno(), 2)
                    import pytest

                    if not begin():
                        os._exit(71)
                    plugins = [Fewer(effort.examples), Watched(log, limits)]
                    code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=plugins))
            finally:
                os._exit(code)
        end = time.monotonic() + 5 * limit  # the processor's time is bounded; this is for one that sleeps
        status = None
        while status is None:
            done, found = os.waitpid(child, os.WNOHANG)
            if done:
                status = found
            elif time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
            else:
                time.sleep(0.02)
        code = os.waitstatus_to_exitcode(status)
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        if code == 71:
            return "absent", ""
        if code < 0:  # ran on, or crashed: the test that was running did it when it had had its own time
            running = [(test, at) for what, test, at in lines if what == "begins"]
            ran_on = bool(running) and limit - running[-1][1] >= limits[running[-1][0]]
            crashed = -code not in (signal.SIGXCPU, signal.SIGKILL)
            return ("killed" if ran_on or crashed else "survived"), running[-1][0] if running else ""
        failed = [test for what, test, _ in lines if what == "fails"]
        if failed:
            return "killed", failed[0]
        broken = any(what == "breaks" for what, _, _ in lines)
        return ("killed" if broken or code in (2, 3, 70) else "survived"), ""


def forget(path: Path) -> None:
    """No compiled form of the file *path* is left."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


def fresh() -> bool:
    """Nothing of the project is loaded."""
    for name in [n for n in sys.modules if n.split(".")[0] in (*COPIED, "attn_derive")]:
        del sys.modules[name]
    return True


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not tried:
        return 0.0, 1.0
    z, share = 1.96, killed / tried
    middle, wide = share + z * z / (2 * tried), z * sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return (middle - wide) / (1 + z * z / tried), (middle + wide) / (1 + z * z / tried)


def digest(file: str) -> str:
    """Of the text of *file*: a result counts as long as that is the same."""
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:12]


def known() -> dict[str, str]:
    """The last result of each mutant that was tried on the files as they are."""
    if not RESULTS.exists():
        return {}
    lines = map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines())
    now = {file: digest(file) for file in files()}
    return {
        found["mutant"]: found["result"] for found in lines if now.get(found["mutant"].split(":")[0]) == found["of"]
    }


def part(word: str) -> tuple[int, int]:
    """``1/2`` as (1, 2)."""
    which, _, of = word.partition("/")
    if not 1 <= int(which) <= int(of):
        raise ValueError(word)
    return int(which), int(of)


def main() -> int:
    """Try what is asked for; exit code 1 when a mutant survives."""
    words = argparse.ArgumentParser(description="Mutants of derive and rules against the tests that reach them.")
    words.add_argument("--reach", action="store_true", help="measure which test runs which line, and stop")
    words.add_argument("--size", type=int, help="a sample of about this size; all unless given")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--again", action="store_true", help="survivors only, against more tests and examples")
    words.add_argument("--part", type=part, default=(1, 1), help="1/2: the first, third, ... of them")
    words.add_argument("--minutes", type=float, help="stop after this long")
    words.add_argument("names", nargs="*", help="mutants by name, instead of a sample; or folders of tests")
    asked = words.parse_args()
    if asked.reach:
        measure(asked.names or MEASURED)
        return 0
    strata = [found for file in files() if (found := mutants_of(file))]
    chosen = [m for found in strata for m in found] if asked.size is None else sampled(strata, asked.size, asked.seed)
    if asked.names:
        chosen = [m for found in strata for m in found if m.name in asked.names]
    chosen = chosen[asked.part[0] - 1 :: asked.part[1]]
    before = known()
    todo = [
        m for m in chosen if asked.names or (before.get(m.name) == "survived" if asked.again else m.name not in before)
    ]
    random.Random(asked.seed).shuffle(todo)  # what is tried when the time is up is a sample too
    effort = AGAIN if asked.again else FIRST
    reach = reached()
    import hypothesis  # noqa: F401  (imported once, before forks)
    import networkx  # noqa: F401
    import numpy  # noqa: F401
    import pytest
    import sympy  # noqa: F401

    end = time.monotonic() + 60 * (asked.minutes or 1e6)
    with tempfile.TemporaryDirectory() as folder, open(RESULTS, "a", encoding="utf-8") as results:
        trial = Trial(copied(Path(folder) / "tree"), reach)
        of = {m.file: digest(m.file) for m in todo}
        sys.path.insert(0, str(trial.tree))
        os.chdir(trial.tree)
        if effort.loaded:
            tests = sorted({t.split("::")[0] for m in todo for t in reach.tests(m, effort)})
            pytest.main(["-qq", "--collect-only", "--no-summary", "-p", "no:cacheprovider", *tests])  # loads them
            gc.freeze()
        for n, mutant in enumerate(todo, start=1):
            if time.monotonic() > end:
                break
            begun = time.monotonic()
            found = trial.attempt(mutant, effort) | {"seconds": round(time.monotonic() - begun, 1)}
            results.write(json.dumps({"mutant": mutant.name, "of": of[mutant.file]} | found) + "\n")
            results.flush()
            print(f"{n}/{len(todo)} {mutant.name} {' '.join(map(str, found.values()))}", flush=True)
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

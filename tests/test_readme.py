"""The README is true: its code runs, its excerpt is what is printed, its commands exist and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.outputs.command import derive
from tests.pages import blocks, doctest_report, not_printed

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    derive (.*?)(?:  .*)?$", README, flags=re.MULTILINE)


def test_the_python_of_the_readme_runs() -> None:
    """Each line of the API example gives the result printed under it."""
    (example,) = blocks(README, "python")
    assert example.text.count(">>>") >= 8
    assert not doctest_report(example.text, "README.md", {})


EXCERPTS = re.findall(r"^From `derive ([^`\n]*)`[^\n]*:\n\n```text\n(.*?)```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "excerpt"), EXCERPTS, ids=[command for command, _ in EXCERPTS])
def test_the_excerpts_of_the_readme_are_printed(command: str, excerpt: str) -> None:
    """Every line of each stands in the output of the command above it, in that order."""
    assert len(EXCERPTS) == README.count("```text")
    assert not_printed(excerpt, derive(*shlex.split(command)).out) is None


@pytest.mark.parametrize("command", [c for c in COMMANDS if "|" not in c])
def test_the_commands_of_the_readme_work(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is accepted as written; a check is run with few samples."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command.replace("--samples 1000", "--samples 3"))
    answer = derive(*words)
    assert answer.code == 0, answer.err
    assert answer.out or list(tmp_path.iterdir())


def test_the_readme_opens_with_the_question_and_two_commands() -> None:
    """Title, question, ``make demo``, ``make test``: before anything else, and the Makefile has both."""
    lines = [line for line in README.splitlines() if line]
    assert lines[1].endswith("?**")
    assert lines[2].strip().startswith("make demo")
    assert lines[3].strip().startswith("make test")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:", makefile, flags=re.MULTILINE)
    assert re.search(r"^test:", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"])
def test_every_path_that_a_page_names_exists(page: str) -> None:
    """Links, and files named in code spans, are there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    linked = [(ROOT / page).parent / target for target in re.findall(r"\]\(([^)#:]+)\)", text)]
    named = [
        ROOT / path for path in re.findall(r"`((?:derive|rules|hardware|outputs|tests|benchmarks)/[\w./-]*)`", text)
    ]
    missing = [str(path) for path in linked + named if not path.exists() and "NAME" not in path.name]
    assert missing == []

"""Code blocks of a page of documentation: taken out, run, and held against what the page shows under them."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.outputs.command import derive

_BLOCK = re.compile(r'^```(\w*)(?: title="([^"]*)")?\n(.*?)^```$', flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: the word behind the fence.
        title: the file it is, where it is one.
        text: what stands in it.
    """

    language: str
    title: str
    text: str


def blocks(page: str, language: str | None = None) -> list[Block]:
    """The fenced blocks of *page* in order: all of them, or those in *language*."""
    found = [Block(*match.groups(default="")) for match in _BLOCK.finditer(page)]
    assert 2 * len(found) == page.count("```"), "a fence is left open, or is of another form"
    return found if language is None else [block for block in found if block.language == language]


def doctest_report(text: str, name: str, names: dict[str, Any]) -> str:
    """What is wrong with the examples of an interactive session; *names* goes from one block of a page to the next."""
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    assert test.examples, f"{name} has no example: {text}"
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    return "".join(report)


def not_printed(excerpt: str, printed: str) -> str | None:
    """The first line of *excerpt* that is not a line of *printed*, behind those before it; ``...`` stands for any."""
    lines = [line.rstrip() for line in printed.splitlines()]
    at = 0
    for line in excerpt.splitlines():
        if line.strip() == "...":
            continue
        if line.rstrip() not in lines[at:]:
            return line
        at = lines.index(line.rstrip(), at) + 1
    return None


def session(text: str) -> list[tuple[str, str]]:
    """The commands of a console session, each with what is shown under it; a backslash continues a command."""
    found: list[tuple[str, str]] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", " ").partition("\n")
        found.append((command, shown))
    return found


def printed_by(command: str) -> str:
    """What a command of a console session prints, errors too; ``derive`` is called in this process unless a shell is needed."""
    words = shlex.split(command, comments=True)
    if words[0] == "derive" and not {"|", ">", "<"} & set(words):
        answer = derive(*words[1:])
        return answer.out + answer.err
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        check=False,
        timeout=60,
        encoding="utf-8",
        env=os.environ | {"PATH": path},
    )
    return ran.stdout + ran.stderr


def run(page: str, name: str) -> list[str]:
    """Runs every block of *page* in the current folder, in order; a sentence for each thing that is not as shown."""
    names: dict[str, Any] = {}
    wrong: list[str] = []
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, shown in session(block.text):
                printed = printed_by(command)
                if (missing := not_printed(shown, printed)) is not None:
                    wrong.append(f"{name}: `{command}` does not print {missing!r} but:\n{printed}")
                if "error:" in printed and "error:" not in shown:
                    wrong.append(f"{name}: `{command}` fails: {printed}")
        elif block.language == "python":
            if report := doctest_report(block.text, name, names):
                wrong.append(report)
        else:
            wrong.append(f"{name}: a block in {block.language or 'no language'} cannot be run")
    return wrong

"""What a person sees in a terminal: examples under every ``--help``, and a line while they wait."""

from __future__ import annotations

import io
import re
import shlex
import time
from pathlib import Path

import pytest

from outputs.cli import main
from outputs.commands import progress
from outputs.commands.progress import waiting
from tests.outputs.command import derive


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_has_an_example_that_it_takes(name: str) -> None:
    """Under ``--help``, each an existing command with arguments that parse."""
    lines = re.findall(rf"derive ({name}\b.*)", main.commands[name].epilog or "")
    assert lines, f"derive {name} --help shows no example"
    for line in lines:
        command, *words = shlex.split(re.split(r"  +|, and | > |\)\"", line)[0])
        if command != "reload":  # it would open the file
            main.commands[command].make_context(command, words)


SLOW = (
    ("explain", "mha", "N=8192", "d=128"),
    ("steps", "mha"),
    ("bound", "mha", "--schedule", "flash2"),
    ("tiles", "mha", "N=1024", "d=64", "--on", "h100-sxm"),
    ("devices", "mha", "devices=2", "N=1024", "d=64", "h=2", "--scheme", "ring"),
    ("sweep", "mha", "N=64,128", "d=64", "--schedule", "flash2", "-o", "x.csv"),
    ("paper", "mha", "-o", "x.tex"),
    ("report", "mha", "N=1024", "d=64", "--schedule", "flash2", "-o", "x.html"),
    ("plot", "tiles", "mha", "N=1024", "d=64", "-o", "x.svg"),
)


@pytest.mark.parametrize("words", SLOW, ids=[words[0] for words in SLOW])
def test_a_command_that_takes_long_says_so_and_wipes_it(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, on stderr, by its name; without one nothing is said, and stdout is the same."""
    monkeypatch.chdir(tmp_path)
    plain = derive(*words)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    silent = derive(*words, *(("--force",) if "-o" in words else ()))
    assert "\r" not in silent.err
    monkeypatch.setattr("tests.outputs.command.io.StringIO", Terminal)
    answer = derive(*words, *(("--force",) if "-o" in words else ()))
    assert answer.code == plain.code == 0
    assert plain.out == silent.out
    assert f"\rderive {words[0]}" in answer.err
    assert "\x1b" not in answer.err


def test_nothing_is_said_of_what_is_quick(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Below two seconds the terminal stays as it was."""
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with waiting("derive something"):
        pass
    assert terminal.getvalue() == ""
    assert capsys.readouterr().out == ""


def test_the_line_says_how_far_it_has_come_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written over itself, never wider than the terminal, and wiped when the block ends, by an error too."""
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())

    def wait() -> None:
        with waiting("derive sweep") as say:
            say("row 2 of 1000 and so on")
            time.sleep(0.1)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        wait()
    said = terminal.getvalue()
    assert "derive sweep, row 2 of" in said
    assert "\n" not in said
    assert all(len(line) < 24 for line in said.split("\r"))
    assert said.endswith("\r")
    assert not said.split("\r")[-2].strip()

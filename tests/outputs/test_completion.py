"""Words that a shell offers: the registries' names and the keys of the request, found without SymPy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from derive.attention import names as variant_names
from derive.dtype import TYPES
from derive.masks import KNOWN, LIST_KEYS
from derive.symbols import MEANINGS
from hardware import names as machine_names
from outputs.cli import main
from outputs.commands.completion import Completed, masks
from outputs.request import _GROUPS
from rules.derivations import names as schedule_names
from tests.outputs.command import derive

SHELLS = ("bash", "zsh", "fish")
PROGRAM = """
import sys
from outputs.cli import main
try:
    main([], prog_name="derive")
finally:
    print([m for m in ("sympy", "numpy", "networkx", "rich") if m in sys.modules], file=sys.stderr)
"""


def offered(*words: str) -> list[str]:
    """What is offered for the last of the words behind ``derive``, as Bash cuts them."""
    environment = {
        "_DERIVE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("derive", *words)),
        "COMP_CWORD": str(len(words)),
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, env=os.environ | environment, encoding="utf-8"
    )
    assert ran.stderr.strip() == "[]", "a word waits for a heavy import"
    return [line.removeprefix("plain,") for line in ran.stdout.splitlines()]


def test_commands_variants_and_machines_are_offered() -> None:
    """By the start of the word, or all."""
    assert offered("") == sorted(main.commands)
    assert offered("explain", "") == list(variant_names())
    assert offered("bound", "mla-") == [name for name in variant_names() if name.startswith("mla-")]
    assert offered("tiles", "mha", "--on", "h1") == [name for name in machine_names() if name.startswith("h1")]
    assert offered("machines", "h1") == offered("tiles", "mha", "--on", "h1")


def test_schedules_are_offered_behind_a_comma() -> None:
    """Each but those that stand before it."""
    assert offered("explain", "mha", "--schedule", "") == list(schedule_names())
    assert offered("explain", "mha", "--schedule", "naive,") == [f"naive,{n}" for n in schedule_names() if n != "naive"]


def test_every_key_is_offered_once() -> None:
    """What ``read_request`` knows: sizes, lists, types and the mask; one that was given is not offered again."""
    keys = [m.key for m in MEANINGS.values() if m.key] + [*LIST_KEYS, *_GROUPS, "mask", "N"]
    assert sorted(offered("explain", "mha", "")) == sorted(f"{key}=" for key in keys)
    assert "N=" not in offered("explain", "mha", "N", "=", "8", "")


def test_masks_and_types_are_offered_behind_the_sign() -> None:
    """Bash cuts words at ``=`` and keeps what stands before it."""
    assert sorted(offered("explain", "mha", "mask", "=", "")) == sorted(KNOWN) == sorted(masks())
    assert offered("explain", "mha", "mask", "=", "caus") == ["causal", "causal-tl"]
    assert offered("explain", "mha", "kv", "=") == list(TYPES)


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_offers_words_for_what_it_takes(name: str) -> None:
    """A command added tomorrow too, if it calls its arguments what the others call theirs."""
    for param in main.commands[name].params:
        if param.name in ("variant", "symbols", "schedule", "machine"):
            assert isinstance(param.type, Completed)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed(shell: str) -> None:
    """It asks ``derive`` for words; what Click's script does to words with commas and signs is mended."""
    answer = derive("completion", shell)
    assert (answer.code, answer.err) == (0, "")
    assert f"_DERIVE_COMPLETE={shell}_complete" in answer.out
    mended = {"bash": "compopt -o nospace", "zsh": "compadd -U -V unsorted -S ''", "fish": 'string split --max 1 ","'}
    assert mended[shell] in answer.out
    if shutil.which(shell):
        ran = subprocess.run([shell, "-n"], input=answer.out, capture_output=True, check=False, encoding="utf-8")
        assert (ran.returncode, ran.stderr) == (0, "")


def test_another_shell_is_refused() -> None:
    """In one line, with those there are."""
    answer = derive("completion", "tcsh")
    assert answer.code == 2
    assert "'bash', 'zsh', 'fish'" in answer.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    """The function that the script defines, called as Bash calls it."""
    program = tmp_path / "derive"
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c \'from outputs.cli import main; main(prog_name="derive")\' "$@"\n'
    )
    program.chmod(0o755)
    script = derive("completion", "bash").out
    asked = (
        'COMP_WORDS=(derive explain mha mask = caus); COMP_CWORD=5; _derive_completion derive; echo "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"], capture_output=True, check=True, env=environment, encoding="utf-8"
    )
    assert ran.stdout.split() == ["causal", "causal-tl"]


def test_the_type_is_still_text() -> None:
    """Help and errors are as before."""
    assert Completed(lambda _: []).name == click.STRING.name

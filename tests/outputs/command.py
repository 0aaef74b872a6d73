"""The command line called in this process, or as a process of its own where that makes a difference."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from derive.attention import variant as find_variant
from derive.symbols import MEANINGS
from outputs.cli import main

DERIVE = (sys.executable, "-m", "outputs.cli")
"""The command as a process: what ``derive`` runs."""

PATIENCE = 30
"""Seconds after which a question counts as one that is never answered."""


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout as JSON."""
        return json.loads(self.out)


def derive(*words: str) -> Answer:
    """``derive WORDS...``, called in this process; its output goes to no terminal, and it may not run for ever."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    columns = os.environ.pop("COLUMNS", None)  # test runners set it
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(PATIENCE)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(list(words))
    except SystemExit as end:
        code = end.code
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if columns is not None:
            os.environ["COLUMNS"] = columns
        gc.enable()  # the command turns it off for its own short life
    assert isinstance(code, int)
    return Answer(code, out.getvalue(), err.getvalue())


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no answer within {PATIENCE} s")


def derive_process(*words: str, **environment: str) -> Answer:
    """``derive WORDS...`` in a process of its own, stdout and stderr piped."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR", "PYTHONUTF8")}
    found = subprocess.run(
        [*DERIVE, *words], capture_output=True, env=inherited | environment, check=False, timeout=120, encoding="utf-8"
    )
    return Answer(found.returncode, found.stdout, found.stderr)


def tex_or_skip(*needed: str) -> None:
    """Skip without TeX; in CI that is a failure."""
    missing = [] if shutil.which("pdflatex") else ["pdflatex"]
    if not missing:
        missing = [n for n in needed if not subprocess.run(["kpsewhich", n], capture_output=True, check=False).stdout]
    if missing:
        if os.environ.get("CI"):
            pytest.fail(f"CI compiles LaTeX, and {', '.join(missing)} is missing")
        pytest.skip(f"no {', '.join(missing)} on this machine")


SIZES = {"N_p": 70, "C_k": 60, "h": 4, "h_k": 2, "d": 64, "d_c": 48, "d_r": 16, "n_t": 70, "h_i": 3, "d_i": 32}
SIZES |= {"l_c": 20, "d_s": 10, "l_s": 30, "n_b": 3, "W": 50, "n_page": 16}
"""A small value for each size that a variant may be written in, lengths aside."""


def numbers_for(variant: str, length: int = 300) -> tuple[str, ...]:
    """A small shape with tiles that divide nothing: KEY=VALUE for each size of *variant* that has no default."""
    has = {s.name for s in find_variant(variant).symbols}
    lengths = f"N={length}" if "N_q" in has else f"Nk={length}"
    return (lengths, *(f"{MEANINGS[name].key}={size}" for name, size in SIZES.items() if name in has))

"""A page as Chromium shows it: what it says on its console, and its elements once scripts have run."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
PATIENCE = 120
"""Seconds for one page on a busy machine."""


@dataclass(frozen=True)
class Shown:
    """What became of a page.

    Attributes:
        dom: its elements, as HTML.
        console: errors and other lines of the console.
    """

    dom: str
    console: tuple[str, ...]

    def text_of(self, id_: str) -> str:
        """The text of ``<pre id=...>``, unescaped."""
        found = re.search(rf'<pre id="{id_}">(.*?)</pre>', self.dom, flags=re.DOTALL)
        assert found, f"no <pre id={id_}>; console: {self.console}"
        return html.unescape(found[1])


def browser_or_skip() -> None:
    """Skip without Chromium; in CI that is a failure."""
    if BROWSER is None:
        if os.environ.get("CI"):
            pytest.fail("CI shows pages in Chromium, and there is none; apt-get install chromium")
        pytest.skip("no Chromium on this machine")


FRAME = """<!DOCTYPE html><meta charset="utf-8"><title>frame</title><pre id="found"></pre>
<iframe src="page.html" width="{width}" height="900" style="border: 0"></iframe>
<script>addEventListener("message", event => {{ document.getElementById("found").textContent = event.data; }});</script>"""
"""No window is as narrow as a phone, but a frame is: a script in the page posts what it found."""


def show(folder: Path, text: str) -> Shown:
    """*text* shown as a page of its own."""
    return _shown(folder, {"page.html": text}, "page.html")


def show_narrow(folder: Path, text: str, width: int) -> Shown:
    """*text* shown *width* CSS pixels wide; what it posts to its parent is the text of ``found``."""
    return _shown(folder, {"page.html": text, "frame.html": FRAME.format(width=width)}, "frame.html")


def _shown(folder: Path, pages: dict[str, str], opened: str) -> Shown:
    browser_or_skip()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
    ]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom"]
    ran = subprocess.run(
        [*command, (folder / opened).as_uri()], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    console = tuple(line for line in ran.stderr.splitlines() if "CONSOLE" in line)
    assert ran.stdout, ran.stderr[-800:]
    return Shown(ran.stdout, console)

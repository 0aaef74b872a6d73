"""The documentation is true: every block of it runs, what it shows is printed, and the site builds without a broken link."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from derive.attention import names as variant_names
from hardware import names as machine_names
from rules.catalogue import ALL
from rules.derivations import names as schedule_names
from tests.pages import printed_by, run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LONGEST = 150

every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))


@every_page
def test_every_block_of_a_page_runs_as_shown(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print the lines under them, examples give their results."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    wrong = run(path.read_text(encoding="utf-8"), path.name)
    assert not wrong, "\n".join(wrong)


@every_page
def test_a_page_is_short(path: Path) -> None:
    """A page says one thing."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


CORRECTIONS = re.findall(
    r"^\| (?:\[.*?\]\(https://[^)]*\)|data sheets.*?) \| .* \| \*\*(.*?)\*\* \| `(derive .*)` \|$",
    (DOCS / "corrections.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


@pytest.mark.parametrize(("right", "command"), CORRECTIONS, ids=[command for _, command in CORRECTIONS])
def test_the_right_value_is_what_is_answered(right: str, command: str) -> None:
    """Each row of the corrections, by its own question, as a whole amount."""
    rows = (DOCS / "corrections.md").read_text(encoding="utf-8").count("| `derive ")
    assert len(CORRECTIONS) == rows > 10
    assert re.search(rf"(?<![\d,.]){re.escape(right)}(?!\w)", printed_by(command))


def needs(*modules: str) -> None:
    """Skip without what builds the documentation; in CI that is a failure."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        if os.environ.get("CI"):
            pytest.fail(f"CI builds the documentation, and {', '.join(missing)} is missing; pip install '.[docs]'")
        pytest.skip(f"no {', '.join(missing)}; pip install '.[docs]'")


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    """Strictly; its catalogue has every name of the registries, and nothing of it asks for another host's script or font."""
    needs("mkdocs", "material", "mkdocstrings")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    ran = subprocess.run(
        build,
        cwd=ROOT,
        capture_output=True,
        check=False,
        encoding="utf-8",
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    catalogue = (tmp_path / "site" / "catalogue.html").read_text(encoding="utf-8")
    rules = (str(rule) for rule in ALL)
    missing = [
        name
        for name in (*variant_names(), *schedule_names(), *machine_names(), *rules)
        if f"<code>{name}</code>" not in catalogue
    ]
    assert missing == []
    for page in (tmp_path / "site").rglob("*.html"):
        written = page.read_text(encoding="utf-8")
        assert "<!-- generated" not in written, page
        assert not re.search(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?://", written), page

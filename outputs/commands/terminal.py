"""Where an answer goes: tables to the terminal, JSON to stdout, files to the disk and their names to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click


def show(sections: list[Any]) -> None:
    """Print *sections* to stdout: colour only on a terminal, as wide as it is."""
    from rich.console import Console

    from outputs import layout

    layout.show(sections, Console(soft_wrap=False, width=None if sys.stdout.isatty() else _columns()))


def _columns() -> int:
    """The width of output that goes to no terminal: ``COLUMNS``, else 120."""
    columns = os.environ.get("COLUMNS", "")
    return min(max(40, int(columns)), 1000) if columns.isdecimal() and len(columns) < 9 else 120


def show_json(value: Any) -> None:
    """Print *value* to stdout as JSON."""
    import json

    click.echo(json.dumps(value, indent=1))


def write(contents: Mapping[Path, str | bytes], *, force: bool, says: str = "") -> None:
    """Write every file, or none, and name each; *says* is added to the name."""
    from derive.errors import path_named
    from outputs import writing

    writing.write(contents, force=force)
    for path in contents:
        click.echo(f"wrote {path_named(path)}{says}", err=True)

"""``derive code``: the closed forms as a Python module that needs nothing of this project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.question import answer, question, typed
from outputs.commands.terminal import write

_EXAMPLES = """\b
Examples:
  derive code mha --schedule flash2 -o flash2_bytes.py
  derive code gqa mask=causal --numpy -o gqa_bytes.py

\b
FILE.py needs the standard library alone; run its examples with: python -m doctest FILE.py
"""


@click.command(epilog=_EXAMPLES)
@question
@click.option("-o", "output", required=True, type=click.Path(path_type=Path), help="The module to write, FILE.py.")
@click.option("--numpy", "arrays", is_flag=True, help="Add a function that maps the others over NumPy arrays.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def code(output: Path, arrays: bool, force: bool, **asked: Any) -> None:
    """The closed forms of VARIANT as a Python module, exact."""
    if output.suffix != ".py" or not output.stem.isidentifier() or not output.name.isascii():
        raise click.BadParameter(f"-o {output}: name a file such as flash2_bytes.py, which Python can import")
    found = answer(**asked)
    from outputs.program import module

    write({output: module(found, typed("code", asked, found), arrays=arrays)}, force=force)

"""``derive report``: an answer as one HTML file that works offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.progress import waiting
from outputs.commands.question import answer, question, typed
from outputs.commands.terminal import write

_EXAMPLES = """\b
Examples:
  derive report mha N=8192 d=128 --on h100-sxm -o report.html
  derive report gqa h=32 hk=8 mask=causal --schedule flash2,flash2-packed -o gqa.html

\b
FILE.html needs no network and no other file. A symbol left out begins with a number that its slider changes.
"""


@click.command(epilog=_EXAMPLES)
@question
@click.option("-o", "output", required=True, type=click.Path(path_type=Path), help="The page to write, FILE.html.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def report(output: Path, force: bool, **asked: Any) -> None:
    """Derivation, pictures and numbers of VARIANT as one HTML file whose sliders recompute everything."""
    if output.suffix != ".html":
        raise click.BadParameter(f"-o {output}: name a file that ends in .html, such as report.html")
    with waiting("derive report"):
        found = answer(**asked)
        from outputs.report.document import report as document

        page = document(found, typed("report", asked, found))
    write({output: page}, force=force)

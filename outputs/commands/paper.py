"""``derive paper``: a derivation as LaTeX for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.progress import waiting
from outputs.commands.question import answer, question, typed
from outputs.commands.terminal import write

_EXAMPLES = """\b
Examples:
  derive paper mha --schedule flash2 -o flash2.tex
  derive paper gqa N=8K d=128 h=32 hk=8 --on h100-sxm --layout narrow -o appendix.tex

\b
FILE.tex is a body for \\input; FILE-standalone.tex compiles alone; FILE.bib holds what is cited.
"""


@click.command(epilog=_EXAMPLES)
@question
@click.option("-o", "output", required=True, type=click.Path(path_type=Path), help="The body to write, FILE.tex.")
@click.option(
    "--layout", type=click.Choice(["wide", "narrow"]), default="wide", show_default=True, help="One column, or two."
)
@click.option("--force", is_flag=True, help="Replace files that exist.")
def paper(output: Path, layout: str, force: bool, **asked: Any) -> None:
    """Notation, proposition, proof and tables of VARIANT as LaTeX."""
    if (
        output.suffix != ".tex"
        or not output.stem.replace("-", "").replace("_", "").isalnum()
        or not output.name.isascii()
    ):
        raise click.BadParameter(f"-o {output}: name a file such as flash2.tex, of letters, digits, - and _")
    with waiting("derive paper"):
        found = answer(**asked)
    from outputs.paper.document import files
    from outputs.paper.layout import LAYOUTS

    with waiting("derive paper"):
        made = files(found, output.stem, LAYOUTS[layout], f"{typed('paper', asked, found)} --layout {layout}")
    write({output.with_name(name): text for name, text in made.items()}, force=force)

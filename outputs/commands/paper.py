"""``derive paper``: a derivation as LaTeX for a paper."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from outputs.commands.progress import waiting

_EXAMPLES = """\b
Examples:
  derive paper mha --schedule flash2 -o flash2.tex
  derive paper gqa N=8K d=128 h=32 hk=8 --on h100-sxm --layout narrow -o appendix.tex

\b
FILE.tex is a body for \\input; FILE-standalone.tex compiles alone; FILE.bib holds what is cited.
"""


def add(main: click.Group, question: Callable[[Any], Any], answer: Callable[..., Any]) -> None:
    """Add the command to *main*; *question* decorates it with the arguments of a question, *answer* answers one."""

    @main.command(epilog=_EXAMPLES)
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
        from derive.errors import path_named
        from outputs.paper.document import files
        from outputs.paper.layout import LAYOUTS
        from outputs.writing import write

        schedules = asked["schedule"] or ",".join(a.name for a in found.accounts)
        command = " ".join(["derive paper", asked["variant"], *asked["symbols"], "--schedule", schedules])
        command += f" --on {asked['machine']}" if asked["machine"] else ""
        with waiting("derive paper"):
            made = files(found, output.stem, LAYOUTS[layout], f"{command} --layout {layout}")
        write({output.with_name(name): text for name, text in made.items()}, force=force)
        for name in made:
            click.echo(f"wrote {path_named(output.with_name(name))}", err=True)
        sys.stderr.flush()

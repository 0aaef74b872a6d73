"""``derive plot``: one picture of an answer, for a paper or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.progress import waiting
from outputs.commands.question import answer, question
from outputs.commands.terminal import write

KINDS = {
    "roofline": "what the machine allows, and where each schedule stands",
    "traffic": "bytes against the length, with the residency threshold",
    "regimes": "the least growth class against M, with the crossovers",
    "tiles": "SM-side bytes against the row tile, with the footprint's limit",
}
_SUFFIXES = (".png", ".svg", ".pdf")
_EXAMPLES = """\b
Kinds:
""" + "\n".join(f"  {kind:<9} {says}" for kind, says in KINDS.items()) + """

\b
Examples:
  derive plot roofline mha N=8192 d=128 --on h100-sxm -o roofline.pdf
  derive plot traffic mha d=128 --on h100-sxm --schedule naive,flash1,flash2 -o traffic.svg

\b
Plots need matplotlib: pip install 'attn-derive[plots]'
"""  # fmt: skip


@click.command(epilog=_EXAMPLES)
@click.argument("kind", type=click.Choice(list(KINDS)))
@question
@click.option(
    "-o", "output", required=True, type=click.Path(path_type=Path), help="The picture to write: .png, .svg or .pdf."
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def plot(kind: str, output: Path, force: bool, **asked: Any) -> None:
    """A picture of VARIANT, of one KIND: vectors with text as text in .svg and .pdf, the same bytes each time."""
    if output.suffix not in _SUFFIXES:
        raise click.BadParameter(
            f"-o {output}: name a file that ends in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
        )
    with waiting("derive plot"):
        found = answer(**asked)
        from outputs.pictures.start import start
        from outputs.plots.kinds import plot as drawn

        begun = start(found)
        picture = drawn(kind, begun, output.suffix[1:])
    write({output: picture}, force=force)
    if begun.chosen:
        words = ", ".join(f"{name} = {number}" for name, number in begun.chosen.items())
        click.echo(f"not in the question, so drawn at {words}", err=True)

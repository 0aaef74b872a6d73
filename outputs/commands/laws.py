"""``derive laws``: how each count grows with each symbol. Imports the engine only when it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.question import answer, question
from outputs.commands.terminal import show, show_json, write

_EXAMPLES = """\b
Examples:
  derive laws mha                               exponents, factors, and what they need
  derive laws gqa mask=causal --schedule flash2
  derive laws mha mask=window W=1024 --json
  derive laws mha N=8192 d=128 --on h100-sxm    and where DRAM bytes jump, from what to what
  derive laws mha -o laws.tex

\b
KEY=VALUE sets a size, as for `derive explain`: a law speaks of all sizes, a number says where it is looked at.
Sizes that must divide one another, such as hk and h, stay open unless given.
"""


@click.command(epilog=_EXAMPLES)
@question
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write the tables as LaTeX (FILE.tex) instead.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def laws(json_: bool, output: Path | None, force: bool, **asked: Any) -> None:
    """How each count of VARIANT grows with each symbol: exponent, regime, exact factor; proved or checked."""
    if output is not None and output.suffix != ".tex":
        raise click.BadParameter(f"-o {output}: only FILE.tex is written; use --json for data")
    from derive.attention import variant as find_variant
    from derive.symbols import MEANINGS
    from outputs.laws import growths, with_groups_open

    words = " ".join(["derive laws", asked["variant"], *asked["symbols"]])
    keys = {name: meaning.key for name, meaning in MEANINGS.items()}
    asked["symbols"] = with_groups_open(asked["symbols"], find_variant(asked["variant"]).divides, keys)
    found = growths(answer(**asked))
    from outputs import laws_report

    if output is not None:
        write({output: laws_report.as_latex(found, f"{words} -o {output.name}")}, force=force)
    elif json_:
        show_json(laws_report.as_json(found))
    else:
        show(laws_report.report(found))

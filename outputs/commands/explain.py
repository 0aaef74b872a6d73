"""``derive explain``: the whole answer to a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.progress import waiting
from outputs.commands.question import KEYS, answer, formatted, question, typed
from outputs.commands.terminal import show, show_json, write

QUESTIONS = """\b
Examples:
  derive explain mha N=8192 d=128 --on h100-sxm
  derive explain gqa N=8K d=128 h=32 hk=8 mask=causal --schedule flash2,flash2-packed
  derive explain mha                      closed forms, no numbers
"""
"""Examples of a question."""


@click.command(epilog=f"{QUESTIONS}\n{KEYS}")
@question
@formatted
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
@click.option("--steps", "with_steps", is_flag=True, help="Add the full derivation.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write a LaTeX document (FILE.tex) instead.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def explain(json_: bool, format_: str, with_steps: bool, output: Path | None, force: bool, **asked: Any) -> None:
    """FLOPs, bytes, residency and time of VARIANT, each derived and each with its reason."""
    if output is not None and output.suffix != ".tex":
        raise click.BadParameter(f"-o {output}: only FILE.tex is written; use --json for data")
    with waiting("derive explain"):
        found = answer(**asked)
    if output is not None:
        from outputs.paper.document import single

        write({output: single(found, f"{typed('explain', asked, found)} -o {output.name}")}, force=force)
    elif json_:
        from outputs.as_json import as_json

        show_json(as_json(found))
    elif format_ != "text":
        from outputs.formula_list import closed_forms, printed

        click.echo(printed(closed_forms(found), format_))
    else:
        from outputs import text

        with waiting("derive explain"):
            sections = text.explain(found) + (text.steps(found) if with_steps else [])
        show(sections)

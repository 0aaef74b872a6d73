"""``derive steps``: the derivation, to read or as a record that reads back."""

from __future__ import annotations

from typing import Any

import click

from outputs.commands.progress import waiting
from outputs.commands.question import KEYS, answer, formatted, question
from outputs.commands.terminal import show, show_json

_EXAMPLES = """\b
Examples:
  derive steps mha --schedule flash2
  derive steps mha --schedule flash2 --format mathml
  derive steps gqa mask=causal --json > gqa.json     a record; `derive reload gqa.json` takes each step again

"""


@click.command(epilog=_EXAMPLES + KEYS)
@question
@formatted
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout, which `derive reload` reads.")
def steps(json_: bool, format_: str, **asked: Any) -> None:
    """The derivation of VARIANT's schedules, rule by rule, with the graphs between."""
    with waiting("derive steps"):
        found = answer(**asked)
    if json_:
        from outputs.record.writing import record

        show_json(record(found))
    elif format_ != "text":
        from outputs.formula_list import derivation, printed

        click.echo(printed(derivation(found), format_))
    else:
        from outputs import text

        show(text.steps(found))

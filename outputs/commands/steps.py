"""``derive steps``: the derivation, to read or as a record that reads back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from outputs.commands.progress import waiting

_EXAMPLES = """\b
Examples:
  derive steps mha --schedule flash2
  derive steps gqa mask=causal --json > gqa.json     a record; `derive reload gqa.json` takes each step again

"""


def add(
    main: click.Group,
    question: Callable[[Any], Any],
    answer: Callable[..., Any],
    show: Callable[[list[Any]], None],
    keys: str,
) -> None:
    """Add the command to *main*; *question*, *answer* and *keys* are those of a question, *show* prints sections."""

    @main.command(epilog=_EXAMPLES + keys)
    @question
    @click.option("--json", "json_", is_flag=True, help="One JSON object on stdout, which `derive reload` reads.")
    def steps(json_: bool, **asked: Any) -> None:
        """The derivation of VARIANT's schedules, rule by rule, with the graphs between."""
        with waiting("derive steps"):
            found = answer(**asked)
        if json_:
            import json

            from outputs.record.writing import record

            click.echo(json.dumps(record(found), indent=1))
        else:
            from outputs import text

            show(text.steps(found))

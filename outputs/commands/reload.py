"""``derive reload``: a recorded derivation, read back and taken again step by step."""

from __future__ import annotations

from typing import IO

import click

_EXAMPLES = """\b
Examples:
  derive steps mha --schedule flash2 --json > flash2.json
  derive reload flash2.json

\b
A file that was changed by hand is refused: each step is taken again by its rule, and must leave what the file says.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.File(encoding="utf-8"))
def reload(file: IO[str]) -> None:
    """Read derivations that `derive steps --json` wrote, taking each step again."""
    from derive.errors import BadValueError
    from outputs.record.reading import MOST_CHARACTERS, load

    try:
        words = file.read(MOST_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise BadValueError(f"{file.name} is no text; write one with `derive steps VARIANT --json`") from None
    for found in load(words):
        rules = ", ".join(str(step.rule) for step in found.steps)
        click.echo(f"{found.name}: {len(found.steps)} steps hold{': ' if rules else ''}{rules}")

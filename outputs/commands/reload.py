"""``derive reload``: a recorded derivation, read back and taken again step by step."""

from __future__ import annotations

from pathlib import Path

import click

_EXAMPLES = """\b
Examples:
  derive steps mha --schedule flash2 --json > flash2.json
  derive reload flash2.json

\b
A file that was changed by hand is refused: each step is taken again by its rule, and must leave what the file says.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
def reload(file: Path) -> None:
    """Read derivations that `derive steps --json` wrote, taking each step again."""
    from derive.errors import repeated
    from derive.reading import read_text
    from outputs.record.reading import MOST_CHARACTERS, load

    where = Path("/dev/stdin") if str(file) == "-" else file
    for found in load(read_text(where, MOST_CHARACTERS, "`derive steps VARIANT --json`")):
        rules = ", ".join(str(step.rule) for step in found.steps)
        click.echo(f"{repeated(found.name)}: {len(found.steps)} steps hold{': ' if rules else ''}{rules}")

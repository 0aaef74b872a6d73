"""``derive sweep``: a question at many numbers, as a table in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.progress import waiting
from outputs.commands.question import answer, question
from outputs.commands.terminal import write

_EXAMPLES = """\b
Examples:
  derive sweep mha N=1K:128K:2x d=64,128 --on h100-sxm -o mha.csv
  derive sweep gqa N=8K d=128 h=32 hk=1,2,4,8 mask=full,causal -o gqa.csv

\b
A value may be a list (64,128) or a range with both ends: 1K:128K:2x by factors, 64:512:64 by steps.
A row for each combination and schedule; one that cannot exist has its reason in the column error.
"""


@click.command(epilog=_EXAMPLES)
@question
@click.option(
    "-o",
    "output",
    required=True,
    type=click.Path(path_type=Path),
    help="The table to write: FILE.csv or FILE.parquet.",
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def sweep(output: Path, force: bool, **asked: Any) -> None:
    """Bytes, FLOP and times of VARIANT at every combination of the values given, exactly."""
    if output.suffix not in (".csv", ".parquet"):
        raise click.BadParameter(f"-o {output}: name a file that ends in .csv or .parquet")
    from derive.attention import variant as find_variant
    from derive.errors import InfeasibleError
    from outputs import sweep as table

    names = find_variant(asked["variant"]).named_schedules(asked["schedule"])
    rows: list[dict[str, Any]] = []
    asked_for = [(words, name) for words in table.grid(asked["symbols"]) for name in names or (None,)]
    with waiting("derive sweep") as say:
        for words, name in asked_for:
            say(f"row {len(rows) + 1} of {len(asked_for)}")
            try:
                found = answer(**{**asked, "symbols": words, "schedule": name or asked["schedule"]})
                rows.append(table.row(found, found.accounts[0]))
            except InfeasibleError as error:
                rows.append(table.refused(asked["variant"], name or "", asked["machine"], words, str(error)))
    write(
        {output: table.as_csv(rows) if output.suffix == ".csv" else table.as_parquet(rows)},
        force=force,
        says=f": {len(rows)} rows",
    )

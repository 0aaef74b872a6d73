"""``derive confront``: a profiler's counters beside the engine's. Imports the engine only when it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from outputs.commands.question import answer, question
from outputs.commands.terminal import show, show_json

_EXAMPLES = """\b
Examples:
  derive confront mha --data ncu.csv --schedule flash2 N=8192 d=128 --on h100-sxm
  derive confront gqa --data results.csv N=8K d=128 h=32 hk=8 --on mi300x --kernel attn_fwd
  ncu --csv --page raw --metrics dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum ./app > ncu.csv

\b
FILE.csv is what Nsight Compute or rocprof writes, at most 16 MiB; launches of a kernel are averaged, kernels added up.
"""


@click.command(epilog=_EXAMPLES)
@question
@click.option("--data", "data", required=True, type=click.Path(path_type=Path), help="The profiler's CSV file.")
@click.option("--kernel", default="", help="Only kernels with this text in their name.")
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
def confront(data: Path, kernel: str, json_: bool, **asked: Any) -> None:
    """Measured DRAM, L2 and time figures beside the engine's, with residuals and what explains each."""
    from derive.errors import BadValueError
    from outputs.confront.profile_csv import read_profile
    from outputs.confront.readings import Confrontation
    from outputs.confront.report import as_json, report

    profile = read_profile(data, kernel)
    found = tuple(Confrontation(account, profile) for account in answer(**asked).accounts)
    if not all(one.readings for one in found):
        raise BadValueError(
            "a measurement has sizes: give every one, such as N=8192 d=128, to have counts to set beside it"
        )
    if json_:
        show_json(as_json(found, asked["variant"]))
    else:
        show(report(found))

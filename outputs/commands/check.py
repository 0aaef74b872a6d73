"""``derive check``: closed forms against code that shares nothing with them."""

from __future__ import annotations

import gc
import sys
from typing import Any

import click

from outputs.commands.question import question
from outputs.commands.terminal import show, show_json


@click.command(epilog="Example: derive check gqa --schedule flash2,split-kv --samples 1000")
@question
@click.option("--samples", default=200, show_default=True, type=click.IntRange(1, 10**6), help="Configurations to try.")
@click.option("--seed", default=0, show_default=True, type=int, help="Seed of the random configurations.")
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
def check(samples: int, seed: int, json_: bool, **asked: Any) -> int:
    """Closed forms of VARIANT against code that shares nothing with them, on random configurations."""
    from outputs.checking import check_schedules, report

    gc.enable()  # this one runs long
    progress = (
        None if json_ or not sys.stderr.isatty() else (lambda words: click.echo(f"\r{words}", err=True, nl=False))
    )
    found = check_schedules(asked, samples=samples, seed=seed, progress=progress)
    if json_:
        show_json(found.as_json())
    else:
        if progress:
            click.echo("", err=True)
        show(report(found))
    return 0 if found.mismatches == 0 else 1

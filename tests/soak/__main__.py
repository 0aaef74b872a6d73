"""``python -m tests.soak``: exit code 0 when everything agrees, 1 when something does not."""

from __future__ import annotations

import sys

import click

from outputs.commands.progress import waiting
from tests.soak.runner import Total, batch, soak


@click.command()
@click.option("--seed", default=0, show_default=True, type=int, help="Seed of everything that is drawn.")
@click.option("--configurations", type=click.IntRange(1), help="Stop after so many.")
@click.option("--seconds", type=click.FloatRange(1), help="Stop after so long.")
@click.option("--processes", default=2, show_default=True, type=click.IntRange(1), help="How many run at once.")
@click.option("--first", is_flag=True, help="Stop at the first batch that disagrees.")
@click.option("--batch", "number", type=click.IntRange(0), help="Run this batch alone.")
def main(
    seed: int, configurations: int | None, seconds: float | None, processes: int, first: bool, number: int | None
) -> None:
    """Closed forms against the tile walk and the LRU cache, on random configurations of everything there is."""
    if number is not None:
        found = Total(seed)
        found.add(number, batch(seed, number))
    else:
        if configurations is None and seconds is None:
            configurations = 100_000
        click.echo(f"seed {seed}, {processes} processes")
        with waiting("soak") as progress:
            found = soak(
                seed,
                configurations=configurations,
                seconds=seconds,
                processes=processes,
                stop_at_first=first,
                progress=progress,
            )
    for line in found.lines:
        click.echo(line)
    sys.exit(1 if found.mismatches else 0)


if __name__ == "__main__":
    main()

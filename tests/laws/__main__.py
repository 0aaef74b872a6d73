"""``python -m tests.laws``: every law that ``derive laws`` prints, looked at elsewhere; exit code 1 when one does not hold.

python -m tests.laws --lines 40 --seed 7
python -m tests.laws --variants mha,gqa --masks window,prefix
"""

from __future__ import annotations

import os
import sys
import traceback

import click

from derive.attention import names
from derive.errors import DeriveError
from tests.laws.regimes import MASKS, asked, look


@click.command()
@click.option("--seed", default=0, show_default=True, type=int, help="Seed of everything that is drawn.")
@click.option(
    "--lines", default=20, show_default=True, type=click.IntRange(1), help="Lines that each law is looked at on."
)
@click.option("--variants", default="", help="Of these alone, separated by commas.")
@click.option("--masks", default="", help="Under these alone.")
def main(seed: int, lines: int, variants: str, masks: str) -> None:
    """Look at every law, each variant and mask in a process of its own, so that no memory of it stays."""
    failed = False
    for mask in masks.split(",") if masks else MASKS:
        for name in variants.split(",") if variants else names():
            child = os.fork()
            if child == 0:
                try:
                    code = 1 if report(name, mask, lines, seed) else 0
                except BaseException:
                    traceback.print_exc()
                    code = 2
                sys.stdout.flush()
                os._exit(code)
            _, status = os.waitpid(child, 0)
            failed |= os.waitstatus_to_exitcode(status) != 0
    sys.exit(1 if failed else 0)


def report(name: str, mask: str, lines: int, seed: int) -> int:
    """Print what was found, a line a schedule and a line a law that does not hold; how many do not."""
    try:
        found = asked(name, mask)
    except DeriveError:
        return 0  # the variant takes no such mask
    wrong = 0
    for one in found:
        laws = {(f.law.amount, f.symbol, f.law.exponents, f.law.regime): f for f in one.findings if f.law is not None}
        seen = [(f, look(f.law, one.roles, lines, f"{seed} {n}")) for n, f in enumerate(laws.values()) if f.law]
        kinds = [f.law.evidence.value for f, _ in seen if f.law]
        none = sum(f.law is None for f in one.findings)
        unseen = sum(not x.lines for _, x in seen)
        click.echo(
            f"{name} {mask} {one.account.name}: "
            f"{kinds.count('proved')} proved, {kinds.count('checked')} checked, {none} undecided; "
            f"{sum(x.lines for _, x in seen)} lines, {unseen} laws without one"
        )
        for f, x in seen:
            if x.broken is not None:
                wrong += 1
                click.echo(f"  FALSE {f.count.name} in {f.symbol}: {x}")
    return wrong


if __name__ == "__main__":
    main()

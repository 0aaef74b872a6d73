"""``derive tiles``: the tiles a machine can hold, ranked. Imports the engine only when it is asked."""

from __future__ import annotations

import click

from outputs.commands.progress import waiting
from outputs.commands.terminal import show, show_json

_TILES_HELP = """\b
KEY=VALUE sets a size, as for `derive explain`; N (or Nq and Nk) and d are needed.
Br=128 keeps that tile and chooses the others.

\b
Examples:
  derive tiles mha N=8192 d=128 --on h100-sxm
  derive tiles gqa N=8K d=128 h=32 hk=8 mask=causal --on a100-sxm-80gb --stages 1
  derive tiles mha N=8192 d=128 --on h100-sxm --registers 192KiB
"""


@click.command(epilog=_TILES_HELP)
@click.argument("variant")
@click.argument("symbols", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--schedule", default="flash2", show_default=True, help="The schedule whose tiles are chosen.")
@click.option("--on", "machine", help="Machine that must hold them, e.g. h100-sxm.")
@click.option(
    "--stages", default=2, show_default=True, type=click.IntRange(1, 64), help="Buffers of an operand that streams."
)
@click.option(
    "--step",
    default=16,
    show_default=True,
    type=click.IntRange(1, 2**20),
    help="Tile sizes are multiples of this; rows also of the machine's matrix instruction.",
)
@click.option(
    "--rows",
    type=click.IntRange(1, 2**20),
    help="Rows that one reading of an operand serves: the machine's matrix instruction, or 64, unless given.",
)
@click.option("--registers", help="Registers of an SM that accumulators may take, e.g. 192KiB; all unless given.")
@click.option("--results-shared", is_flag=True, help="P passes through shared memory to the second product.")
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout, with every tile.")
def tiles(
    variant: str,
    symbols: tuple[str, ...],
    schedule: str,
    machine: str | None,
    stages: int,
    step: int,
    rows: int | None,
    registers: str | None,
    results_shared: bool,
    json_: bool,
) -> None:
    """The tiles of VARIANT that a machine can hold, ranked by the bytes they move, beside those of published kernels."""
    from derive.attention import variant as find_variant
    from hardware import load
    from outputs.request import capacity, read_request
    from outputs.tiles import Choices, tiling
    from outputs.tiles_report import as_json, report

    if machine is None:
        raise click.UsageError(
            "tiles are chosen for a machine: name one with --on, e.g. --on h100-sxm (see `derive machines`)"
        )
    room = None if registers is None else capacity("--registers ", registers)
    choices = Choices(stages, step, rows, results_shared, room)
    with waiting("derive tiles"):
        found = tiling(read_request(find_variant(variant), symbols), schedule, load(machine), choices=choices)
    if json_:
        show_json(as_json(found))
    else:
        with waiting("derive tiles"):
            sections = report(found)
        show(sections)

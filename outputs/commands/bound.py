"""The command ``derive bound``: its words, and which printer answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outputs.commands.progress import waiting
from outputs.commands.terminal import show, show_json, write

if TYPE_CHECKING:
    from outputs.bounds import Bounds


_BOUND_HELP = """\b
Examples:
  derive bound mha                            classes, regimes and lower bounds in symbols
  derive bound mha --where 'd <= N'           the table a paper prints
  derive bound mha N=8192 d=128 --on h100-sxm which regime these numbers are in, and bytes
  derive bound gqa hk=? h=? B=?               with heads and batch left open
"""


@click.command(epilog=_BOUND_HELP)
@click.argument("variant")
@click.argument("symbols", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--schedule", help="Schedules, separated by commas; all that apply unless named.")
@click.option("--on", "machine", help="Machine whose shared memory is M (see `derive machines`).")
@click.option("--where", multiple=True, metavar="REGIME", help="Assume a regime, such as 'd <= N'; may be repeated.")
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
@click.option("-o", "output", type=click.Path(path_type=Path), help="Write a LaTeX document (FILE.tex) instead.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def bound(json_: bool, output: Path | None, force: bool, **asked: Any) -> None:
    """How VARIANT's traffic must grow: Theta classes with certificates, the best schedule by regime, lower bounds."""
    if output is not None and output.suffix != ".tex":
        raise click.BadParameter(f"-o {output}: only FILE.tex is written; use --json for data")
    with waiting("derive bound"):
        found = answer_bound(**asked)
    if output is not None:
        from outputs.bound_latex import document

        write({output: document(found)}, force=force)
    elif json_:
        from outputs.bound_json import as_json

        show_json(as_json(found))
    else:
        from outputs.bound_text import sections

        with waiting("derive bound"):
            shown = sections(found)
        show(shown)


def answer_bound(
    variant: str, symbols: tuple[str, ...], schedule: str | None, machine: str | None, where: tuple[str, ...]
) -> Bounds:
    """The bounds that the words of the command line ask for."""
    from derive.attention import variant as find_variant
    from derive.growth.reading import read_condition
    from hardware import load
    from outputs.bounds import Bounds
    from outputs.request import read_request

    found = load(machine) if machine is not None else None
    request = read_request(find_variant(variant), symbols)
    names = tuple(dict.fromkeys(n.strip() for n in (schedule or "").split(",") if n.strip()))
    if schedule is not None and not names:
        raise click.BadParameter("--schedule names no schedule; try --schedule naive,flash2")
    assumed = tuple(condition for words in where for condition in read_condition(words))
    answer = Bounds(request, names, found, assumed=assumed)
    _ = answer.best  # so that bad input is found before anything is printed
    return answer

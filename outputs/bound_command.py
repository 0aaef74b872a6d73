"""The command ``derive bound``: its words, and which printer answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from outputs.bounds import Bounds


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

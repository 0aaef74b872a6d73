"""``derive devices``: one attention shared among several devices. Imports the engine only when it is asked."""

from __future__ import annotations

import re
from fractions import Fraction

import click

from outputs.commands.progress import waiting
from outputs.commands.terminal import show, show_json

_EXAMPLES = """\b
Examples:
  derive devices mha devices=8 N=64K d=128 h=32 mask=causal --on h100-sxm
  derive devices gqa devices=4 N=8K d=128 h=32 hk=2 --scheme tensor-parallel,ulysses
  derive devices mha devices=16 N=1M d=128 --on a100-sxm-80gb --link 12.5GB/s
  derive devices mha mask=causal          closed forms, no numbers

\b
KEY=VALUE sets a size, as for `derive explain`; devices= is how many share the work.
"""
_BANDWIDTH = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(GB/s|TB/s)", re.ASCII)
_UNITS = {"GB/s": 10**9, "TB/s": 10**12}


@click.command(epilog=_EXAMPLES)
@click.argument("variant")
@click.argument("symbols", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--scheme", help="Schemes, separated by commas; all that can be unless given.")
@click.option("--on", "machine", help="What each device is, e.g. h100-sxm; gives FLOP/s and link bandwidth.")
@click.option("--link", help="Bandwidth of a device's links, one way, e.g. 50GB/s; the machine's own unless given.")
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
def devices(
    variant: str, symbols: tuple[str, ...], scheme: str | None, machine: str | None, link: str | None, json_: bool
) -> None:
    """Link bytes, memory, balance and overlap of VARIANT on several devices, by scheme."""
    from derive.attention import variant as find_variant
    from derive.symbols import R
    from hardware import load
    from outputs.devices import divisions
    from outputs.devices_report import as_json, report
    from outputs.request import read_request

    request = read_request(find_variant(variant), symbols, also=(R.name,))
    with waiting("derive devices"):
        found, refused = divisions(request, scheme, load(machine) if machine else None, _bandwidth(link))
    if json_:
        show_json(as_json(found, refused))
    else:
        show(report(found, refused))


def _bandwidth(written: str | None) -> Fraction | None:
    """Bytes a second, exactly; ``None`` when nothing is written."""
    from derive.errors import BadValueError, repeated

    if written is None:
        return None
    found = _BANDWIDTH.fullmatch(written)
    if found is None or Fraction(found[1]) == 0:
        raise BadValueError(f"--link {repeated(written)}: a bandwidth one way is written such as 12.5GB/s or 0.9TB/s")
    return Fraction(found[1]) * _UNITS[found[2]]

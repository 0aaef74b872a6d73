"""``derive cache``: the cache of keys and values of a stack of layers. Imports the engine only when it is asked."""

from __future__ import annotations

import click

from outputs.commands.terminal import show, show_json

_EXAMPLES = """\b
Examples:
  derive cache mha layers=32 h=32 d=128 N=4K
  derive cache gqa layers=32 windowed=24 W=1024 h=32 hk=8 d=128 N=128K --budget 40GiB
  derive cache gqa layers=80 h=64 hk=8 devices=8 d=128 N=16K kv=fp8
  derive cache gqa layers=1 hk=8 h=32 d=128 N=8191 page=16    what pages allocate, and the table that names them
  derive cache gqa windowed=? layers=?      closed forms, no numbers

\b
windowed= of the layers keep what mask= shows them (window unless given), the others everything; without it, all layers do as
the mask says. devices= is how many share the heads.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("variant")
@click.argument("symbols", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--budget", help="Bytes that the cache may take, e.g. 40GiB: the longest N is found.")
@click.option("--json", "json_", is_flag=True, help="One JSON object on stdout.")
def cache(variant: str, symbols: tuple[str, ...], budget: str | None, json_: bool) -> None:
    """Bytes of VARIANT's cached keys and values in a stack of layers, and the longest N that fits a budget."""
    from derive.attention import variant as find_variant
    from derive.symbols import L, L_w, R, n_page
    from outputs.kv_cache import KvCache, as_json, report
    from outputs.request import capacity, read_request

    keys = {word.partition("=")[0] for word in symbols}
    words = (*symbols, "mask=window") if "windowed" in keys and "mask" not in keys else symbols
    request = read_request(find_variant(variant), words, also=(L.name, L_w.name, R.name, n_page.name))
    found = KvCache(request, None if budget is None else capacity("--budget ", budget))
    if json_:
        show_json(as_json(found))
    else:
        show(report(found))

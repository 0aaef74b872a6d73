"""``derive variants``, ``derive schedules`` and ``derive machines``: the names that a question may use."""

from __future__ import annotations

from typing import Any

import click

from outputs.commands.terminal import show, show_json


@click.command(epilog="Example: derive variants --json")
@click.option("--json", "json_", is_flag=True, help="A JSON list.")
def variants(json_: bool) -> None:
    """The variants of attention that can be asked about, each with the sizes it is written in."""
    from derive.attention import names, variant
    from derive.symbols import MEANINGS

    rows = []
    for name in names():
        found = variant(name)
        keys = [m.key for s, m in MEANINGS.items() if s in {x.name for x in found.symbols}]
        rows.append({"name": name, "says": found.says, "symbols": keys, "reference": found.reference})
    _list(rows, json_)


@click.command(epilog="Example: derive schedules --json")
@click.option("--json", "json_", is_flag=True, help="A JSON list.")
def schedules(json_: bool) -> None:
    """The schedules, each a tuple of rules."""
    from rules.derivations import names, plan

    _list([{"name": n, "says": plan(n).says, "reference": plan(n).reference} for n in names()], json_)


@click.command(epilog="Examples: derive machines, and derive machines h100-sxm")
@click.argument("name", required=False)
@click.option("--json", "json_", is_flag=True, help="JSON instead of a table.")
def machines(name: str | None, json_: bool) -> None:
    """The machines; with NAME, every constant of one with its kind, source and date."""
    from hardware import load, names

    if name is None:
        _list([{"name": n, "says": load(n).name, "reference": ""} for n in names()], json_)
        return
    machine = load(name)
    rows = [
        {
            "constant": c.name,
            "value": c.as_printed,
            "kind": c.kind + (f", {c.sparsity}" if c.sparsity else ""),
            "source": c.source,
            "date": str(c.date),
            "readings": [{"value": r.text, "source": r.source} for r in c.readings],
            "note": c.note,
        }
        for c in machine.constants.values()
    ]
    if json_:
        _list(rows, json_=True)
        return
    from outputs.layout import Section, Table

    table = Table(("constant", "value", "kind", "source, and the readings that disagree"))
    for row, c in zip(rows, machine.constants.values(), strict=True):
        disagree = "".join(f"; {r.text}: {r.source}" for r in c.readings)
        table.add(c.name, c.as_printed, str(row["kind"]), f"{c.source} ({c.date}){disagree}")
    absent = [f"{a.name}: {a.reason}" for a in machine.absent.values()]
    show([Section(f"{machine.id}: {machine.name}", table, absent)])


def _list(rows: list[dict[str, Any]], json_: bool) -> None:
    """Names with what they stand for."""
    if json_:
        show_json(rows)
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        symbols = f"  ({', '.join(row['symbols'])})" if row.get("symbols") else ""
        reference = f"  [{row['reference']}]" if row["reference"] else ""
        click.echo(f"{row['name']:<{width}}  {row['says']}{symbols}{reference}")

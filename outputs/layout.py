"""Sections, tables and wrapped lines, printed to the terminal's width."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


_WIDE = 100
"""Below this width exact bytes stand under the table, so that closed forms keep to one line."""


@dataclass
class Table:
    """Rows of text under column heads."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """One more row."""
        self.rows.append(cells)


@dataclass
class Section:
    """A heading, what stands under it, and notes below that."""

    title: str
    body: Table | list[str]
    notes: list[str] = field(default_factory=list)


def show(sections: list[Section], console: Console) -> None:
    """Print *sections*."""
    for n, section in enumerate(sections):
        if n:
            console.file.write("\n")
        if section.title and console.is_terminal:
            console.print(section.title, style="bold", markup=False, highlight=False)
        elif section.title:
            _show_line(section.title, console)
        if isinstance(section.body, Table):
            _show_table(section.body, console)
        else:
            for line in section.body:
                _show_line(line, console)
        for line in section.notes:
            _show_line(f"  {line}", console)


def _show_line(line: str, console: Console) -> None:
    """One line, wrapped under its own first word."""
    from textwrap import wrap

    indent = len(line) - len(line.lstrip())
    hang = " " * (indent + (3 if line.lstrip()[:1].isdigit() else 2))
    width = max(console.width, 40)
    for part in wrap(line.strip(), width, initial_indent=" " * indent, subsequent_indent=hang) or [""]:
        console.file.write(f"{part}\n")


def _show_table(table: Table, console: Console) -> None:
    from rich import box
    from rich.table import Table as RichTable

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=False)
    narrow = console.width < _WIDE and {"bytes", "exact"} <= set(table.heads)
    used = [
        n
        for n, head in enumerate(table.heads)
        if any(row[n] for row in table.rows) and not (narrow and head == "exact")
    ]
    for n in used:
        head = table.heads[n]
        numeric = n > 0 and head in ("bytes", "exact", "time", "at least")
        drawn.add_column(head, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    for row in table.rows:
        drawn.add_row(*(row[n].replace("[", r"\[") for n in used))
    if narrow:
        exact = table.heads.index("exact")
        label, lines = "", []
        for row in table.rows:
            label = row[0] or label
            lines.append(" ".join(filter(None, (label, row[1], row[exact]))))
    with console.capture() as captured:
        console.print(drawn)
    for line in captured.get().rstrip("\n").split("\n"):
        console.file.write(line.rstrip() + "\n")
    if narrow:
        _show_line("  exact: " + "; ".join(lines), console)

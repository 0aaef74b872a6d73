"""Tables of sizes and counts from CSV files: numbers only, nothing evaluated, bad rows named by their line in the file."""

from __future__ import annotations

import csv
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from derive.errors import BadValueError, one_line, path_named, repeated
from derive.exact import Number
from derive.reading import read_text
from outputs.testing.numerals import decimal_mark, number

LARGEST_FILE = 16 * 2**20
"""Bytes of a file that is read."""
MOST_ROWS = 200_000
_DELIMITERS = ",;\t"


@dataclass(frozen=True)
class Lines:
    """A CSV file as text.

    Attributes:
        where: its name, for messages.
        heads: the column heads.
        rows: the cells of each further line, as many as there are heads.
        numbers: the line of the file that each row ends in.
    """

    where: str
    heads: list[str]
    rows: list[list[str]]
    numbers: list[int]

    def place(self, row: int, head: str = "") -> str:
        """Where a row is, for messages, and in it the cell under *head*."""
        return f"{self.where}, row {self.numbers[row]}" + (f", {repeated(head)}" if head else "")


def lines_of(path: Path, known: Collection[str] = ()) -> Lines:
    """The rows of the CSV file *path*; lines that are no CSV, such as a profiler's ``==PROF==``, are left out.

    Commas stand between cells, or what stands between the heads: semicolons or tabs. The heads may come again, as where one run
    is appended to another.

    Args:
        path: the file.
        known: heads of which one at least must be there; what a program printed before them is left out.

    Raises:
        BadValueError: it cannot be read, is empty, too large, no text, or has a row with other than a cell under each head.
    """
    where = path_named(path)
    numbered = [(n, line) for n, line in enumerate(read_text(path, LARGEST_FILE, "CSV").splitlines(), start=1)]
    kept = [(n, line) for n, line in numbered if line.strip() and not line.startswith(("==", "#"))]
    if known:
        first = next((at for at, (_, line) in enumerate(kept) if _is_head(line, known)), 0)
        kept = kept[first:]
    if not kept:
        said = next((line for _, line in numbered if line.startswith("==ERROR==")), None)
        raise BadValueError(
            f"{where} has no row; the profiler says: {one_line(said[9:].strip(), 300)}"
            if said
            else f"{where} is empty: it needs a line of column heads and a row for each measurement"
        )
    read = csv.reader((line for _, line in kept), delimiter=_delimiter(kept[0][1]), skipinitialspace=True, strict=True)
    try:
        cells = [(row, kept[read.line_num - 1][0]) for row in read]
    except csv.Error as error:
        raise BadValueError(f"{where} is no CSV: {error}") from None
    heads = [head.strip() for head in cells[0][0]]
    below = [(row, n) for row, n in cells[1:] if [cell.strip() for cell in row] != heads]
    if len(below) > MOST_ROWS:
        raise BadValueError(f"{where} has {len(below)} rows; at most {MOST_ROWS} are read")
    if not below:
        raise BadValueError(f"{where} has column heads and no row: export at least one measurement")
    found = Lines(where, heads, [row for row, _ in below], [n for _, n in below])
    for n, row in enumerate(found.rows):
        if len(row) != len(heads):
            raise BadValueError(f"{found.place(n)}: {len(row)} cells under {len(heads)} heads")
    return found


def _is_head(line: str, known: Collection[str]) -> bool:
    """Whether one cell of *line* is a head that is known."""
    if not any(name in line for name in known):
        return False
    try:
        cells = next(csv.reader([line], delimiter=_delimiter(line), skipinitialspace=True))
    except csv.Error:
        return False
    return any(cell.strip() in known for cell in cells)


def _delimiter(line: str) -> str:
    """What stands between the heads: what there is most of."""
    return max(_DELIMITERS, key=line.count)


def read_table(path: Path | str, columns: Collection[str] | None = None) -> list[dict[str, Number]]:
    """The rows of a CSV file of numbers under column heads, exact.

    Args:
        path: the file.
        columns: those to read; all of them unless given, and every cell must then be a number.

    Raises:
        BadValueError: it is no such file, or lacks a column; the row and column at fault are named.
    """
    lines = lines_of(Path(path))
    heads = lines.heads
    if len(set(heads)) != len(heads):
        raise BadValueError(f"{lines.where} has a column head twice; name each column once")
    for name in columns or ():
        if name not in heads:
            has = ", ".join(map(repeated, heads))[:200]
            raise BadValueError(f"{lines.where} has no column {repeated(name)}; it has {has}")
    wanted = [n for n, head in enumerate(heads) if columns is None or head in columns]
    mark = decimal_mark((row[n] for row in lines.rows for n in wanted), lines.where)
    return [
        {heads[n]: number(row[n], lines.place(at, heads[n]), mark) for n in wanted} for at, row in enumerate(lines.rows)
    ]

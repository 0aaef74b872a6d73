"""Tables of sizes and counts from CSV files: numbers only, nothing evaluated, bad rows named."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from fractions import Fraction
from pathlib import Path

from derive.errors import BadValueError, path_named, repeated
from derive.exact import Number
from derive.reading import read_text

LARGEST_FILE = 16 * 2**20
"""Bytes of a file that is read."""
MOST_ROWS = 200_000
_NUMBER = re.compile(r"[+-]?(\d+(?:,\d{3})+|\d+)?(\.\d+)?(?:[eE][+-]?\d{1,2})?", re.ASCII)


def number(text: str, where: str) -> Number:
    """The number that *text* writes, exactly, thousands separated or not.

    Raises:
        BadValueError: it is none, or not finite.
    """
    stripped = text.strip()
    if stripped.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise BadValueError(
            f"{where} is {repeated(stripped)}: a measurement is a finite number; measure that row again, or leave it out"
        )
    matched = _NUMBER.fullmatch(stripped)
    if len(stripped) > 60 or matched is None or not (matched[1] or matched[2]):
        raise BadValueError(
            f"{where} is {repeated(stripped)}, no number; write digits, such as 8388608, 8,388,608 or 8.4e6"
        )
    found = Fraction(stripped.replace(",", ""))
    return found.numerator if found.denominator == 1 else found


def lines_of(path: Path) -> list[list[str]]:
    """The rows of the CSV file *path*, as text; lines that are no CSV, such as a profiler's ``==PROF==``, are left out.

    Raises:
        BadValueError: it cannot be read, is empty, too large, or no text.
    """
    text = read_text(path, LARGEST_FILE, "CSV")
    kept = [line for line in text.splitlines() if line.strip() and not line.startswith(("==", "#"))]
    if not kept:
        raise BadValueError(
            f"{path_named(path)} is empty: it needs a line of column heads and a row for each measurement"
        )
    try:
        rows = list(csv.reader(kept, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise BadValueError(f"{path_named(path)} is no CSV: {error}") from None
    if len(rows) > MOST_ROWS:
        raise BadValueError(f"{path_named(path)} has {len(rows)} rows; at most {MOST_ROWS} are read")
    if len(rows) < 2:
        raise BadValueError(f"{path_named(path)} has column heads and no row: export at least one measurement")
    return rows


def read_table(path: Path | str, columns: Collection[str] | None = None) -> list[dict[str, Number]]:
    """The rows of a CSV file of numbers under column heads, exact.

    Args:
        path: the file.
        columns: those to read; all of them unless given, and every cell must then be a number.

    Raises:
        BadValueError: it is no such file, or lacks a column; the row and column at fault are named.
    """
    heads, *rows = lines_of(Path(path))
    if len(set(heads)) != len(heads):
        raise BadValueError(f"{path_named(path)} has a column head twice; name each column once")
    for name in columns or ():
        if name not in heads:
            raise BadValueError(
                f"{path_named(path)} has no column {repeated(name)}; it has {', '.join(map(repeated, heads))[:200]}"
            )
    found = []
    for n, row in enumerate(rows, start=2):
        if len(row) != len(heads):
            raise BadValueError(f"{path_named(path)}, row {n}: {len(row)} cells under {len(heads)} heads")
        found.append(
            {
                head: number(cell, f"{path_named(path)}, row {n}, {repeated(head)}")
                for head, cell in zip(heads, row, strict=True)
                if columns is None or head in columns
            }
        )
    return found

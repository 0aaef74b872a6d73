"""Profilers' CSV files as measured kernels: one row a launch or one a metric, in any language, of any of four tools.

What each column counts stands in ``outputs.confront.columns``; columns that are not known are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from derive.errors import BadValueError, repeated
from outputs.confront import requests
from outputs.confront.columns import COLUMNS, HEADS, LONG, MISSING, NAMES, NO_KERNEL, ORDER, STAMPS, UNITS, column_of
from outputs.testing.numerals import decimal_mark, number
from outputs.testing.table import Lines, lines_of

_NS = Fraction(1, 10**9)
_STEADY = Fraction(11, 10)
"""Launches of one kernel that differ by no more than this are averaged without a word."""


@dataclass(frozen=True)
class Profile:
    """One kernel, or several added up.

    Attributes:
        names: the kernels.
        launches: launches that were averaged, kernel by kernel.
        counters: bytes, seconds and shares by counter.
        shortest: seconds of the shortest kernel; ``None`` where no time was measured.
        spread: kernel, counter, least and most, where launches of one kernel differ by more than a tenth.
    """

    names: tuple[str, ...]
    launches: int
    counters: Mapping[str, Fraction]
    shortest: Fraction | None = None
    spread: tuple[tuple[str, str, Fraction, Fraction], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell that counts something.

    Attributes:
        kernel: name of the kernel.
        column: the column it is known by; empty for a time between two stamps.
        unit: the unit that is stated.
        text: what it says.
        row: the row.
    """

    kernel: str
    column: str
    unit: str
    text: str
    row: int


@dataclass(frozen=True, slots=True)
class _Count:
    """A number of a launch: what was counted, by which column, and how many."""

    kernel: str
    counter: str
    column: str
    amount: Fraction


def read_profile(path: Path, kernel: str = "") -> Profile:
    """What *path* measured: launches of one kernel averaged, different kernels added up.

    Args:
        path: a CSV file of Nsight Compute, Nsight Systems or rocprof, at most 16 MiB.
        kernel: text that a kernel's name must contain; every kernel unless given.

    Raises:
        BadValueError: no such file, no known column, a cell that is no number, an unknown unit, or numbers that are all one.
    """
    lines = lines_of(path, HEADS)
    names = _names(lines)
    cells, stamped = _cells(lines, names), _stamps(lines, names)
    if not cells and not stamped:
        wanted = ", ".join(list(COLUMNS)[:3])
        raise BadValueError(
            f"{lines.where} has no counter that is known; export {wanted}, ... (ncu --csv), or FETCH_SIZE (rocprof)"
        )
    present = [cell for cell in cells if cell.text.strip().lower() not in MISSING]
    if not present and not stamped:
        column = cells[0].column
        raise BadValueError(
            f"{lines.where}: {column} is {repeated(cells[0].text.strip() or 'empty')} in every row: this device, or this "
            "user, is not given that counter; export another"
        )
    measured = dict.fromkeys([*(cell.kernel for cell in present), *(count.kernel for count in stamped)])
    if not any(kernel in name for name in measured):
        known = "; ".join(map(repeated, measured))
        raise BadValueError(f"no kernel of {lines.where} has {repeated(kernel)} in its name; it has {known[:200]}")
    chosen = [cell for cell in present if kernel in cell.kernel]
    mark = decimal_mark((cell.text for cell in chosen or present), lines.where)
    found = [*(_count(cell, lines, mark) for cell in chosen), *(count for count in stamped if kernel in count.kernel)]
    _refuse_constant(found, lines.where)
    return _together(found, lines.where)


def _names(lines: Lines) -> list[str]:
    """The kernel's name on each row."""
    named = next((lines.heads.index(name) for name in NAMES if name in lines.heads), None)
    return ["kernel" if named is None else row[named].strip() for row in lines.rows]


def _cells(lines: Lines, names: list[str]) -> list[_Cell]:
    """Cells of columns that are known, those of copies without a kernel left out."""
    long = next((columns for columns in LONG if {*columns[:2]} <= set(lines.heads)), None)
    found = _wide(lines, names) if long is None else _long(lines, names, long)
    return [cell for cell in found if not cell.kernel.startswith(NO_KERNEL)]


def _wide(lines: Lines, names: list[str]) -> Iterator[_Cell]:
    """One row a launch; Nsight Compute's raw page has a row of units below the heads, wherever these come again."""
    columns = [(n, found) for n, head in enumerate(lines.heads) if (found := column_of(head)) is not None]
    units = {n: unit for n, (_, unit) in columns}
    launches = 0
    for at, row in enumerate(lines.rows):
        if (
            columns
            and all(row[n].strip().lower() in UNITS for n, _ in columns)
            and any(row[n].strip() for n, _ in columns)
        ):
            units = {n: stated or row[n].strip() for n, (_, stated) in columns}
            continue
        launches += 1
        for n, (column, _) in columns:
            yield _Cell(names[at], column, units[n], row[n], at)
    if not launches:
        raise BadValueError(f"{lines.where} has column heads and units and no row: profile at least one launch")


def _long(lines: Lines, names: list[str], columns: tuple[str, str, str]) -> Iterator[_Cell]:
    """One row a metric."""
    metric, amount, unit = (lines.heads.index(name) if name in lines.heads else None for name in columns)
    assert metric is not None
    assert amount is not None
    for at, row in enumerate(lines.rows):
        column = row[metric].strip()
        if column in COLUMNS:
            yield _Cell(names[at], column, "" if unit is None else row[unit].strip(), row[amount], at)


def _stamps(lines: Lines, names: list[str]) -> list[_Count]:
    """Seconds between the stamps of each launch, which may be on several rows: a row a metric, or a table twice."""
    found = []
    stamps = next((pair for pair in STAMPS if {*pair} <= set(lines.heads)), None)
    if stamps is None:
        return []
    seen: set[tuple[str, ...]] = set()
    at_heads = [lines.heads.index(stamp) for stamp in stamps]
    for at, row in enumerate(lines.rows):
        texts = [row[n] for n in at_heads]
        if any(text.strip().lower() in MISSING for text in texts):
            continue
        launch = (names[at], *texts)
        if launch in seen:
            continue
        seen.add(launch)
        start, end = (Fraction(number(t, lines.place(at, s))) for t, s in zip(texts, stamps, strict=True))
        if end < start:
            raise BadValueError(
                f"{lines.place(at)}: the kernel ends {float(start - end):g} ns before it starts; measure that row again"
            )
        found.append(_Count(names[at], "seconds", stamps[0], (end - start) * _NS))
    return found


def _count(cell: _Cell, lines: Lines, mark: str) -> _Count:
    counter, worth, usual = COLUMNS[cell.column]
    where = f"{lines.place(cell.row)}, {cell.column}"
    scale = usual if not cell.unit else UNITS.get(cell.unit.lower())
    if scale is None:
        raise BadValueError(f"{where}: the unit {repeated(cell.unit)} is not known; export with bytes, Mbyte, ns or us")
    amount = Fraction(number(cell.text, where, mark)) * (scale * worth)
    if counter == "hit rate" and amount > 1:
        raise BadValueError(
            f"{where} is {repeated(cell.text)}, which no counter can be: hits and requests were counted in different "
            "replays of the kernel; leave that column out, and compare DRAM bytes"
        )
    if amount < 0:
        raise BadValueError(f"{where} is {repeated(cell.text)}, which no counter can be; measure that row again")
    return _Count(cell.kernel, counter, cell.column, amount)


def _refuse_constant(found: list[_Count], where: str) -> None:
    """Refuse what was not counted: zeros, or one number whatever the counter and the kernel.

    Launches of one kernel may well agree.
    """
    amounts = {count.amount for count in found}
    what = {(count.kernel, count.counter) for count in found}
    if len(amounts) == 1 and (len(what) > 1 or (len(found) > 1 and amounts == {0})):
        raise BadValueError(
            f"{where}: every counter is {float(next(iter(amounts))):g}, so nothing was counted; "
            "profile with counters enabled"
        )


def _together(found: Iterable[_Count], where: str) -> Profile:
    by_kernel = _by_kernel(found)
    total: dict[str, Fraction] = {}
    for counters in by_kernel.values():
        for counter, seen in counters.items():
            total[counter] = total.get(counter, Fraction(0)) + _mean(seen)
    if len(by_kernel) > 1 and "hit rate" in total:
        del total["hit rate"]  # shares of different kernels do not add
    lookups = total.pop("hits", Fraction(0)) + total.get("misses", Fraction(0))
    misses = total.pop("misses", None)
    if misses is not None and lookups:
        total.setdefault("hit rate", 1 - misses / lookups)
    asked = {counter: total.pop(counter) for counter in list(total) if counter in requests.COLUMNS.values()}
    total |= requests.bytes_of(asked, where, without=total)
    launches = max(len(seen) for counters in by_kernel.values() for seen in counters.values())
    order = list(dict.fromkeys(counter for counter, *_ in COLUMNS.values()))
    times = [_mean(c["seconds"]) for c in by_kernel.values() if "seconds" in c]
    return Profile(
        tuple(by_kernel),
        launches,
        {c: total[c] for c in order if c in total},
        min(times, default=None),
        tuple(_spread(by_kernel)),
    )


def _by_kernel(found: Iterable[_Count]) -> dict[str, dict[str, list[Fraction]]]:
    """Amounts by kernel and counter; where two columns count the same, those of the first."""
    by_column: dict[tuple[str, str], dict[str, list[Fraction]]] = {}
    for count in found:
        by_column.setdefault((count.kernel, count.counter), {}).setdefault(count.column, []).append(count.amount)
    kept: dict[str, dict[str, list[Fraction]]] = {}
    for (kernel, counter), columns in by_column.items():
        first = min(columns, key=lambda column: ORDER.get(column, len(ORDER)))
        kept.setdefault(kernel, {})[counter] = columns[first]
    return kept


def _spread(by_kernel: Mapping[str, Mapping[str, list[Fraction]]]) -> Iterator[tuple[str, str, Fraction, Fraction]]:
    for kernel, counters in by_kernel.items():
        for counter, seen in counters.items():
            if counter in ("dram read", "dram", "seconds") and len(seen) > 1 and max(seen) > _STEADY * min(seen):
                yield kernel, counter, min(seen), max(seen)


def _mean(seen: list[Fraction]) -> Fraction:
    return seen[0] if len(seen) == 1 else sum(seen, Fraction(0)) / len(seen)

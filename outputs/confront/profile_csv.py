"""Profilers' CSV files as measured kernels: Nsight Compute and rocprof, one row a kernel or one a metric.

Sources: Nsight Compute documentation, "Metrics Reference" and CLI ``--csv`` (byte units are decimal; a sector is 32 B);
rocprof's ``metrics.xml`` (FETCH_SIZE and WRITE_SIZE are bytes / 1024); rocprofv3's ``counter_collection.csv``, a row a counter.
Columns that are not known are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from derive.errors import BadValueError, path_named, repeated
from outputs.confront import requests
from outputs.testing.table import lines_of, number

SECTOR = 32
"""Bytes of an L2 sector."""
_UNITS: Mapping[str, Fraction] = {
    **{
        "": Fraction(1),
        "byte": Fraction(1),
        "b": Fraction(1),
        "sector": Fraction(1),
        "%": Fraction(1),
        "second": Fraction(1),
    },
    **{f"{p}byte": Fraction(1000**n) for n, p in enumerate(("k", "m", "g", "t"), start=1)},
    **{f"{p}ib": Fraction(1024**n) for n, p in enumerate(("k", "m", "g", "t"), start=1)},
    **{f"{p}b": Fraction(1000**n) for n, p in enumerate(("k", "m", "g", "t"), start=1)},
    **{f"{p}second": Fraction(1, 1000**n) for n, p in enumerate(("m", "u", "n"), start=1)},
    **{f"{p}s": Fraction(1, 1000**n) for n, p in enumerate(("m", "u", "n"), start=1)},
    **{
        "s": Fraction(1),
        "ksector": Fraction(1000),
        "msector": Fraction(10**6),
        "request": Fraction(1),
        "pct": Fraction(1),
    },
}
_NS = Fraction(1, 10**9)
COLUMNS: Mapping[str, tuple[str, Fraction, Fraction]] = {
    "dram__bytes_read.sum": ("dram read", Fraction(1), Fraction(1)),
    "dram__bytes_write.sum": ("dram write", Fraction(1), Fraction(1)),
    "dram__bytes.sum": ("dram", Fraction(1), Fraction(1)),
    "lts__t_sectors.sum": ("l2", Fraction(SECTOR), Fraction(1)),
    "lts__t_sectors_op_read.sum": ("l2 read", Fraction(SECTOR), Fraction(1)),
    "lts__t_sectors_op_write.sum": ("l2 write", Fraction(SECTOR), Fraction(1)),
    "lts__t_sector_hit_rate.pct": ("hit rate", Fraction(1, 100), Fraction(1)),
    "gpu__time_duration.sum": ("seconds", Fraction(1), _NS),
    "FETCH_SIZE": ("dram read", Fraction(1), Fraction(1024)),
    "WRITE_SIZE": ("dram write", Fraction(1), Fraction(1024)),
    "FetchSize": ("dram read", Fraction(1), Fraction(1024)),
    "WriteSize": ("dram write", Fraction(1), Fraction(1024)),
    **{column: (counter, Fraction(1), Fraction(1)) for column, counter in requests.COLUMNS.items()},
    "TCC_HIT_sum": ("hits", Fraction(1), Fraction(1)),
    "TCC_MISS_sum": ("misses", Fraction(1), Fraction(1)),
    "DurationNs": ("seconds", Fraction(1), _NS),
}
"""A column's counter, what one of it is worth in bytes, seconds or a share, and its unit where none is stated."""
_NAMES = ("Kernel Name", "KernelName", "Kernel_Name", "Name")
_LONG = (("Metric Name", "Metric Value", "Metric Unit"), ("Counter_Name", "Counter_Value", ""))
"""Heads of a metric, its value and its unit in a file with a row for each: of ncu and of rocprofv3."""
_STAMPS = ("Start_Timestamp", "End_Timestamp")
"""Nanoseconds between which a launch ran, on every row of it."""
_HEAD = re.compile(r"\s*([\w.]+)\s*(?:\[([^\]]*)\])?\s*")


@dataclass(frozen=True)
class Profile:
    """One kernel, or several added up.

    Attributes:
        names: the kernels.
        launches: launches that were averaged, kernel by kernel.
        counters: bytes, seconds and shares by counter.
        shortest: seconds of the shortest kernel; ``None`` where no time was measured.
    """

    names: tuple[str, ...]
    launches: int
    counters: Mapping[str, Fraction]
    shortest: Fraction | None = None


def read_profile(path: Path, kernel: str = "") -> Profile:
    """What *path* measured: launches of one kernel averaged, different kernels added up.

    Args:
        path: a CSV file of Nsight Compute or rocprof, at most 16 MiB.
        kernel: text that a kernel's name must contain; every kernel unless given.

    Raises:
        BadValueError: no such file, no known column, a cell that is no number, an unknown unit, or numbers that are all one.
    """
    heads, *rows = lines_of(path)
    heads = [head.strip() for head in heads]
    long = next((columns for columns in _LONG if {*columns[:2]} <= set(heads)), None)
    found = list(_wide(path, heads, rows) if long is None else _long(path, heads, rows, long))
    known = [f for f in found if f[1] in {c for c, *_ in COLUMNS.values()}]
    if not known:
        wanted = ", ".join(list(COLUMNS)[:3])
        raise BadValueError(
            f"{path_named(path)} has no counter that is known; export {wanted}, ... (ncu --csv), or FETCH_SIZE (rocprof)"
        )
    values = {value for _, _, value in known}
    if len(known) > 1 and len(values) == 1:
        raise BadValueError(
            f"{path_named(path)}: every counter is {float(next(iter(values))):g}, so nothing was counted; "
            "profile with counters enabled"
        )
    chosen = [f for f in known if kernel in f[0]]
    if not chosen:
        names = "; ".join(dict.fromkeys(repeated(name) for name, *_ in known))
        raise BadValueError(f"no kernel of {path_named(path)} has {repeated(kernel)} in its name; it has {names[:200]}")
    return _together(chosen, path_named(path))


def _together(found: Iterable[tuple[str, str, Fraction]], where: str) -> Profile:
    by_kernel: dict[str, dict[str, list[Fraction]]] = {}
    for name, counter, value in found:
        by_kernel.setdefault(name, {}).setdefault(counter, []).append(value)
    total: dict[str, Fraction] = {}
    for counters in by_kernel.values():
        for counter, seen in counters.items():
            total[counter] = total.get(counter, Fraction(0)) + sum(seen, Fraction(0)) / len(seen)
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
    times = [sum(c["seconds"], Fraction(0)) / len(c["seconds"]) for c in by_kernel.values() if "seconds" in c]
    return Profile(tuple(by_kernel), launches, {c: total[c] for c in order if c in total}, min(times, default=None))


def _wide(path: Path, heads: list[str], rows: list[list[str]]) -> Iterable[tuple[str, str, Fraction]]:
    """One row a launch; Nsight Compute's raw page has a row of units below the heads."""
    named = next((n for n, head in enumerate(heads) if head in _NAMES), None)
    units = [""] * len(heads)
    start = 2
    if named is not None and len(rows[0]) == len(heads) and not rows[0][named].strip():
        units, rows, start = [cell.strip() for cell in rows[0]], rows[1:], 3
    if not rows:
        raise BadValueError(f"{path_named(path)} has column heads and units and no row: profile at least one launch")
    for n, row in enumerate(rows, start=start):
        if len(row) != len(heads):
            raise BadValueError(f"{path_named(path)}, row {n}: {len(row)} cells under {len(heads)} heads")
        name, where = row[named].strip() if named is not None else "kernel", f"{path_named(path)}, row {n}"
        for head, unit, cell in zip(heads, units, row, strict=True):
            matched = _HEAD.fullmatch(head)
            if matched is not None and matched[1] in COLUMNS:
                yield name, *_counter(matched[1], matched[2] or unit, cell, where)
        if "DurationNs" not in heads and {*_STAMPS} <= set(heads):
            yield name, *_between(heads, row, where)


def _long(
    path: Path, heads: list[str], rows: list[list[str]], columns: tuple[str, str, str]
) -> Iterable[tuple[str, str, Fraction]]:
    """One row a metric; where rows are stamped, a launch's stamps are on all of its rows."""
    of_metric, of_value, of_unit = columns
    seen: set[tuple[str, ...]] = set()
    places: dict[str, int] = {head: n for n, head in enumerate(heads)}
    named = next((places[name] for name in _NAMES if name in places), None)
    for n, row in enumerate(rows, start=2):
        if len(row) != len(heads):
            raise BadValueError(f"{path_named(path)}, row {n}: {len(row)} cells under {len(heads)} heads")
        metric = row[places[of_metric]].strip()
        name = row[named].strip() if named is not None else "kernel"
        if metric in COLUMNS:
            unit = row[places[of_unit]] if of_unit in places else ""
            yield name, *_counter(metric, unit, row[places[of_value]], f"{path_named(path)}, row {n}")
        if {*_STAMPS} <= places.keys() and (launch := (name, *(row[places[stamp]] for stamp in _STAMPS))) not in seen:
            seen.add(launch)
            yield name, *_between(heads, row, f"{path_named(path)}, row {n}")


def _between(heads: list[str], row: list[str], where: str) -> tuple[str, Fraction]:
    """Seconds between a launch's stamps."""
    start, end = (Fraction(number(row[heads.index(stamp)], f"{where}, {stamp}")) for stamp in _STAMPS)
    if end < start:
        raise BadValueError(
            f"{where}: the kernel ends {float(start - end):g} ns before it starts; measure that row again"
        )
    return "seconds", (end - start) * _NS


def _counter(column: str, unit: str, cell: str, where: str) -> tuple[str, Fraction]:
    counter, worth, usual = COLUMNS[column]
    scale = usual if not unit.strip() else _UNITS.get(unit.strip().lower())
    if scale is None:
        raise BadValueError(
            f"{where}, {column}: the unit {repeated(unit)} is not known; export with bytes, Mbyte, ns or us"
        )
    value = Fraction(number(cell, f"{where}, {column}")) * scale * worth
    if counter == "hit rate" and value > 1:
        raise BadValueError(
            f"{where}, {column} is {repeated(cell)}, which no counter can be: hits and requests were counted in different "
            "replays of the kernel; leave that column out, and compare DRAM bytes"
        )
    if value < 0:
        raise BadValueError(f"{where}, {column} is {repeated(cell)}, which no counter can be; measure that row again")
    return counter, value

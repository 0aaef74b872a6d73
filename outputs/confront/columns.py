"""What a profiler's column counts: Nsight Compute, Nsight Systems, rocprof and rocprofv3, by the names they write.

Sources: Nsight Compute documentation, "Metrics Reference" and CLI ``--csv`` (byte units are decimal; a sector is 32 B), and the
labels of its details page; Nsight Systems, ``cuda_gpu_kern_sum`` and ``cuda_gpu_trace``; rocprof's ``metrics.xml`` (FETCH_SIZE
and WRITE_SIZE are bytes / 1024) and file plugin; rocprofv3's ``counter_collection.csv``, a row a counter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from outputs.confront import requests

SECTOR = 32
"""Bytes of an L2 sector."""
_ONE = Fraction(1)
_NS = Fraction(1, 10**9)
_PREFIXES = (("k", 1), ("m", 2), ("g", 3), ("t", 4))
_PARTS = (("m", 1), ("u", 2), ("\u00b5", 2), ("\u03bc", 2), ("n", 3))
UNITS: Mapping[str, Fraction] = {
    **dict.fromkeys(("", "byte", "b", "sector", "%", "pct", "second", "s", "request"), _ONE),
    **{f"{prefix}{unit}": Fraction(1000**n) for prefix, n in _PREFIXES for unit in ("byte", "b", "sector", "request")},
    **{f"{prefix}ib": Fraction(1024**n) for prefix, n in _PREFIXES},
    **{f"{part}{unit}": Fraction(1, 1000**n) for part, n in _PARTS for unit in ("second", "s")},
}
"""A unit's size in bytes, sectors, seconds or per cent, in small letters."""
COLUMNS: Mapping[str, tuple[str, Fraction, Fraction]] = {
    "dram__bytes_read.sum": ("dram read", _ONE, _ONE),
    "dram__bytes_write.sum": ("dram write", _ONE, _ONE),
    "dram__bytes.sum": ("dram", _ONE, _ONE),
    "dram__sectors_read.sum": ("dram read", Fraction(SECTOR), _ONE),
    "dram__sectors_write.sum": ("dram write", Fraction(SECTOR), _ONE),
    "lts__t_sectors.sum": ("l2", Fraction(SECTOR), _ONE),
    "lts__t_bytes.sum": ("l2", _ONE, _ONE),
    "lts__t_sectors_op_read.sum": ("l2 read", Fraction(SECTOR), _ONE),
    "lts__t_sectors_op_write.sum": ("l2 write", Fraction(SECTOR), _ONE),
    "lts__t_sector_hit_rate.pct": ("hit rate", Fraction(1, 100), _ONE),
    "L2 Hit Rate": ("hit rate", Fraction(1, 100), _ONE),
    "gpu__time_duration.sum": ("seconds", _ONE, _NS),
    "gpu__time_duration.avg": ("seconds", _ONE, _NS),
    "Duration": ("seconds", _ONE, _NS),
    "Avg": ("seconds", _ONE, _NS),
    "FETCH_SIZE": ("dram read", _ONE, Fraction(1024)),
    "WRITE_SIZE": ("dram write", _ONE, Fraction(1024)),
    "FetchSize": ("dram read", _ONE, Fraction(1024)),
    "WriteSize": ("dram write", _ONE, Fraction(1024)),
    **{column: (counter, _ONE, _ONE) for column, counter in requests.COLUMNS.items()},
    "TCC_HIT_sum": ("hits", _ONE, _ONE),
    "TCC_MISS_sum": ("misses", _ONE, _ONE),
    "L2CacheHit": ("hit rate", Fraction(1, 100), _ONE),
    "DurationNs": ("seconds", _ONE, _NS),
    "AverageNs": ("seconds", _ONE, _NS),
}
"""A column's counter, what one of it is worth in bytes, seconds or a share, and its unit where none is stated.

Where a file has two columns of one counter, the first of them here is read."""
ORDER = {column: n for n, column in enumerate(COLUMNS)}
NAMES = ("Kernel Name", "KernelName", "Kernel_Name", "Name")
"""Heads of the kernel's name."""
LONG = (("Metric Name", "Metric Value", "Metric Unit"), ("Counter_Name", "Counter_Value", ""))
"""Heads of a metric, its value and its unit in a file with a row for each: of ncu and of rocprofv3."""
STAMPS = (("Start_Timestamp", "End_Timestamp"), ("BeginNs", "EndNs"))
"""Nanoseconds between which a launch ran, on every row of it: of rocprofv3 and rocprofv2, and of rocprof."""
HEADS = frozenset({*COLUMNS, *NAMES, *(head for heads in LONG for head in heads if head)})
"""Heads by which a profiler's table is known."""
MISSING = frozenset({"", "n/a", "na", "none", "-"})
"""A cell, in small letters, where a counter was not to be had."""
NO_KERNEL = "[CUDA "
"""How Nsight Systems begins the name of what is copied or set without a kernel."""
_HEAD = re.compile(r"([\w.][\w. ]*?)\s*(?:[\[(]([^\])]*)[\])])?", re.ASCII)


def column_of(head: str) -> tuple[str, str] | None:
    """The column that *head* names, and the unit behind it in brackets or parentheses; ``None`` where it is not known."""
    if head in COLUMNS:
        return head, ""
    matched = _HEAD.fullmatch(head.strip())
    return (matched[1], matched[2] or "") if matched is not None and matched[1] in COLUMNS else None

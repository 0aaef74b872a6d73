"""The closed list of units a machine file may use, each with its exact worth in a base unit.

Bandwidths and rates are decimal (1 TB/s = 10^12 B/s). Sizes are what their prefix says: 1 MB = 10^6 B, 1 MiB = 2^20 B.
Vendors print "MB" for caches that are binary, so the files carry MiB there and keep the printed label as a reading.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from fractions import Fraction

_KILO, _KIBI = 10**3, 2**10
_SI = {"k": _KILO, "M": _KILO**2, "G": _KILO**3, "T": _KILO**4, "P": _KILO**5}
_BINARY = {"Ki": _KIBI, "Mi": _KIBI**2, "Gi": _KIBI**3}
_COUNTED = (
    "SMs",
    "CUs",
    "cores",
    "TensorCores",
    "NeuronCores",
    "MXUs",
    "columns",
    "engines",
    "caches",
    "partitions",
    "blocks",
    "threads",
    "lanes",
    "rows",
)

UNITS: dict[str, tuple[Fraction, str]] = {
    "B": (Fraction(1), "B"),
    **{f"{p}B": (Fraction(_SI[p]), "B") for p in ("k", "M", "G", "T")},
    **{f"{p}B": (Fraction(w), "B") for p, w in _BINARY.items()},
    **{f"{p}B/s": (Fraction(_SI[p]), "B/s") for p in ("G", "T")},
    **{f"{p}FLOP/s": (Fraction(_SI[p]), "FLOP/s") for p in ("G", "T", "P")},
    **{f"{p}OP/s": (Fraction(_SI[p]), "op/s") for p in ("T", "P")},
    **{f"{p}Hz": (Fraction(_SI[p]), "Hz") for p in ("M", "G")},
    **{f"B/clk/{of}": (Fraction(1), "B/clk/SM") for of in ("SM", "CU")},
    **{f"ops/clk/{of}": (Fraction(1), "op/clk/SM") for of in ("SM", "CU", "core")},
    **{word: (Fraction(1), "count") for word in _COUNTED},
    "bit": (Fraction(1), "bit"),
    "W": (Fraction(1), "W"),
    "FLOP/B": (Fraction(1), "FLOP/B"),
    "cc": (Fraction(1), "cc"),
}
"""Unit as printed -> (worth, base unit). "SM" in a base unit is whatever ``sm_count`` counts: SM, CU or core."""

RANGES: dict[str, tuple[Fraction, Fraction]] = {
    "B": (Fraction(1), Fraction(10**13)),
    "B/s": (Fraction(10**9), Fraction(10**15)),
    "FLOP/s": (Fraction(10**11), Fraction(10**18)),
    "op/s": (Fraction(10**11), Fraction(10**18)),
    "Hz": (Fraction(10**8), Fraction(10**10)),
    "B/clk/SM": (Fraction(1), Fraction(10**5)),
    "op/clk/SM": (Fraction(1), Fraction(10**5)),
    "count": (Fraction(1), Fraction(10**6)),
    "bit": (Fraction(8), Fraction(10**6)),
    "W": (Fraction(1), Fraction(10**5)),
    "FLOP/B": (Fraction(1), Fraction(10**5)),
    "cc": (Fraction(1), Fraction(100)),
}
"""Base unit -> least and greatest value of one chip that is not a slip of the pen."""

MEASURES: tuple[tuple[str, frozenset[str]], ...] = (
    ("peak_int*", frozenset({"op/s"})),
    ("peak_*", frozenset({"FLOP/s"})),
    ("measured_matmul_*", frozenset({"FLOP/s"})),
    ("*_clock", frozenset({"Hz"})),
    ("smem_bandwidth", frozenset({"B/clk/SM"})),
    ("*_bandwidth", frozenset({"B/s"})),
    ("conversion_throughput_*", frozenset({"op/clk/SM"})),
    ("special_function_throughput", frozenset({"op/clk/SM"})),
    ("*_count", frozenset({"count"})),
    ("mma_rows", frozenset({"count"})),
    ("mma_columns", frozenset({"count"})),
    ("l2_size", frozenset({"B"})),
    ("*_capacity", frozenset({"B"})),
    ("l2_effective", frozenset({"B"})),
    ("cache_line", frozenset({"B"})),
    ("shared_mem_*", frozenset({"B"})),
    ("registers_per_sm", frozenset({"B"})),
)
"""Name of a constant -> base units it may have; the first pattern that fits decides, and no fit leaves it free."""


def base_units(name: str) -> frozenset[str]:
    """Base units that the constant *name* may be given in."""
    return next((bases for pattern, bases in MEASURES if fnmatchcase(name, pattern)), frozenset(RANGES))


def printed_units(bases: frozenset[str]) -> tuple[str, ...]:
    """Units a file may print for a constant measured in one of *bases*."""
    return tuple(unit for unit, (_, base) in UNITS.items() if base in bases)

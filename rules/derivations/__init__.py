"""The named derivations, one a file; this tuple is the whole registry."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rules.plan import Plan

MODULES = (
    "op_by_op", "naive", "square", "row_resident", "flash1", "flash2", "flash2_packed", "split_kv", "per_query",
    "per_sequence", "cascade", "absorbed", "reassociated", "recurrent", "chunkwise", "chunkwise_materialised",
    "chunked", "chunked_materialised",
    "naive_backward", "square_backward", "flash1_backward", "flash2_backward", "flash2_backward_atomic",
    "flash2_backward_split",
)  # fmt: skip
"""Files of this folder in reading order; a schedule's name is its file's, with hyphens."""


def names() -> tuple[str, ...]:
    """Every schedule's name, without importing any."""
    return tuple(module.replace("_", "-") for module in MODULES)


def plan(name: str) -> Plan:
    """The plan *name*.

    Raises:
        UnknownNameError: there is none; the nearest name is suggested.
    """
    from derive.errors import nearest

    if name not in names():
        raise nearest("schedule", name, names(), "derive schedules")
    found: Plan = import_module(f"rules.derivations.{name.replace('-', '_')}").PLAN
    return found

"""Ways to share one attention among devices, one a file; this tuple is the whole registry."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rules.scheme import Scheme

MODULES = ("ring", "ring_zigzag", "all_gather", "ulysses", "tensor_parallel")
"""Files of this folder in reading order; a scheme's name is its file's, with hyphens."""


def names() -> tuple[str, ...]:
    """Every scheme's name, without importing any."""
    return tuple(module.replace("_", "-") for module in MODULES)


def scheme(name: str) -> Scheme:
    """The scheme *name*.

    Raises:
        UnknownNameError: there is none; the nearest name is suggested.
    """
    from derive.errors import nearest

    if name not in names():
        raise nearest("scheme", name, names())
    found: Scheme = import_module(f"rules.parallel.{name.replace('-', '_')}").SCHEME
    return found

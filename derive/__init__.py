"""The language of attention graphs and schedules, and the analyses that count their work and their bytes.

Names are imported on first use, so that asking for help does not import SymPy. What shares its name with its module is
imported from there: ``derive.traffic.traffic``, ``derive.flops.flops``, ``derive.passes.passes``, ``derive.attention.variant``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Cost": "cost",
    "Einsum": "einsum",
    "Index": "einsum",
    "Tensor": "einsum",
    "Mask": "mask",
    "causal": "mask",
    "Graph": "graph",
    "cascade": "notation",
    "Kernel": "schedule",
    "Loop": "schedule",
    "Schedule": "schedule",
    "lift": "schedule",
    "executed": "flops",
    "compulsory": "traffic",
    "dram": "residency",
    "memory_peak": "footprint",
    "apply_once": "rewrite",
    "deduce": "rewrite",
    "symbol": "symbols",
    "value": "exact",
}

if TYPE_CHECKING:
    from derive.cost import Cost
    from derive.einsum import Einsum, Index, Tensor
    from derive.exact import value
    from derive.flops import executed
    from derive.footprint import memory_peak
    from derive.graph import Graph
    from derive.mask import Mask, causal
    from derive.notation import cascade
    from derive.residency import dram
    from derive.rewrite import apply_once, deduce
    from derive.schedule import Kernel, Loop, Schedule, lift
    from derive.symbols import symbol
    from derive.traffic import compulsory

__all__ = [
    "Cost", "Einsum", "Graph", "Index", "Kernel", "Loop", "Mask", "Schedule", "Tensor", "apply_once", "cascade", "causal",
    "compulsory", "deduce", "dram", "executed", "lift", "memory_peak", "symbol", "value",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The public name *name*, from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"derive has no {name!r}; its names are {', '.join(__all__)}")
    return getattr(import_module(f"derive.{_HOME[name]}"), name)

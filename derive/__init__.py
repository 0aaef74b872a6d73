"""The language of attention graphs and schedules, and the analyses that count their work and their bytes.

Names are imported on first use, so that asking for help does not import SymPy.
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
    "Variant": "variant",
    "variant": "attention",
    "passes": "passes",
    "flops": "flops",
    "executed": "flops",
    "compulsory": "traffic",
    "traffic": "traffic",
    "dram": "residency",
    "memory_peak": "footprint",
    "apply_once": "rewrite",
    "deduce": "rewrite",
    "symbol": "symbols",
    "value": "exact",
}

if TYPE_CHECKING:
    from derive.attention import variant
    from derive.cost import Cost
    from derive.einsum import Einsum, Index, Tensor
    from derive.exact import value
    from derive.flops import executed, flops
    from derive.footprint import memory_peak
    from derive.graph import Graph
    from derive.mask import Mask, causal
    from derive.notation import cascade
    from derive.passes import passes
    from derive.residency import dram
    from derive.rewrite import apply_once, deduce
    from derive.schedule import Kernel, Loop, Schedule, lift
    from derive.symbols import symbol
    from derive.traffic import compulsory, traffic
    from derive.variant import Variant

__all__ = [
    "Cost", "Einsum", "Graph", "Index", "Kernel", "Loop", "Mask", "Schedule", "Tensor", "Variant", "apply_once", "cascade",
    "causal", "compulsory", "deduce", "dram", "executed", "flops", "lift", "memory_peak", "passes", "symbol", "traffic",
    "value", "variant",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The public name *name*, from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"derive has no {name!r}; its names are {', '.join(__all__)}")
    return getattr(import_module(f"derive.{_HOME[name]}"), name)

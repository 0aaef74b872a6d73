"""The backward pass of a variant: its graph differentiated, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields

import sympy as sp

from derive.differentiate import differentiate
from derive.graph import Graph
from derive.symbols import b_acc
from derive.variant import Pattern, Variant


@dataclass(frozen=True)
class Backward(Variant):
    """A variant whose graph is the gradients of another's.

    Attributes:
        gradients: bytes an element of gradients that are not as wide as their tensor: the gradient of the scaled queries is
            a partial sum over the keys, held in the accumulator's type.
    """

    gradients: Mapping[str, sp.Expr] = field(default_factory=lambda: {"dQs": b_acc})

    def graph(self, mask: str | Pattern = "full", given: Collection[sp.Symbol] | None = None) -> Graph:
        """The gradients of its inputs under *mask*; see ``Variant.graph``."""
        return differentiate(super().graph(mask, given), self.gradients, self.constants)


def backward(forward: Variant, *, name: str, reference: str) -> Backward:
    """The backward pass of *forward*."""
    same = {f.name: getattr(forward, f.name) for f in fields(Variant)}
    changed = {
        "name": name,
        "says": f"the backward pass of {forward.name}: the gradients of its inputs from dO and what the forward pass saved",
        "reference": reference,
        "direction": "backward",
        "schedules": ("naive-backward", "flash2-backward"),
    }
    return Backward(**same | changed)

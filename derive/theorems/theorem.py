"""A theorem from the literature, and the graphs that it speaks of."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import sympy as sp

from derive.einsum import Einsum, Index, Map, Tensor
from derive.graph import Graph
from derive.notation import cascade

_FILE = Path(__file__).with_name("lower_bounds.toml")


@dataclass(frozen=True)
class Theorem:
    """A published lower bound.

    Attributes:
        name: what it is about.
        source: paper and theorem number.
        read: whether the statement was read in the paper or in what others say of it.
        assumes: its preconditions that no graph shows.
        pattern: the graph it speaks of, in symbols of its own.
        classes: (monomial, regime) pairs as text, in its own symbols.
        note: how the paper states it.
        differentiates: whether it speaks of the backward pass of the pattern.
    """

    name: str
    source: str
    read: str
    assumes: tuple[str, ...]
    pattern: Graph
    classes: tuple[tuple[str, str], ...]
    note: str
    differentiates: bool


@cache
def theorems() -> tuple[Theorem, ...]:
    """Every theorem, in the order of the file."""
    found = []
    for entry in tomllib.loads(_FILE.read_text(encoding="utf-8"))["theorem"]:
        extents = {name: sp.Symbol(symbol, positive=True, integer=True) for name, symbol in entry["extents"].items()}
        last = entry["pattern"].strip().splitlines()[-1].split("[")[0].strip()
        pattern = cascade(entry["pattern"], extents, outputs=(last,), width=sp.Integer(1))
        found.append(
            Theorem(
                entry["name"],
                entry["source"],
                entry["read"],
                tuple(entry["assumes"]),
                pattern,
                tuple((c["monomial"], c["where"]) for c in entry["class"]),
                entry["note"],
                entry.get("differentiates", False),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class Reading:
    """How a theorem's symbols read in a graph.

    Attributes:
        sizes: the extent that each symbol of the theorem stands for.
        copies: how many instances the graph holds.
    """

    sizes: Mapping[str, sp.Expr]
    copies: sp.Expr


def speaks_of(theorem: Theorem, graph: Graph, alike: Mapping[sp.Symbol, sp.Expr] | None = None) -> Reading | None:
    """How *theorem* reads in *graph*, symbols *alike* counted as one; ``None`` when the graph is not its pattern.

    Scaling by a scalar is left out of the graph: it changes no dependence. A mask, or an index that only some tensors carry
    beyond the pattern's, is outside the theorem.
    """
    if graph.mask is not None or theorem.differentiates != bool(graph.given):
        return None
    last = graph.given[-1].output.name if graph.given else ""
    if graph.given:  # a backward pass: the theorem's pattern is the forward pass that ran before
        graph = Graph(graph.given, (last,))
    stands_for = _scaled(graph)
    einsums = [e for e in graph.einsums if e.output.name not in stands_for]
    wanted = theorem.pattern.einsums
    if len(einsums) != len(wanted):
        return None
    common = set.intersection(*(set(t.indices) for e in einsums for t in (*e.inputs, e.output) if t.indices))
    match = _Match(common, stands_for)
    for pattern, einsum in zip(wanted, einsums, strict=True):
        found = match.extended(pattern, einsum)
        if found is None:
            return None
        match = found
    read = {match.tensors[t.name] for t in theorem.pattern.inputs}
    if not read <= {t.name for t in graph.inputs} or match.tensors[theorem.pattern.outputs[0]] not in graph.outputs:
        return None
    sizes: dict[str, sp.Expr] = {}
    for name, index in theorem.pattern.indices.items():
        symbol = str(index.extent)
        extent = match.indices[name].extent.xreplace(dict(alike or {}))
        if sizes.setdefault(symbol, extent) != extent:
            return None
    return Reading(sizes, sp.Mul(*(i.extent for i in common)))


def _scaled(graph: Graph) -> dict[str, str]:
    """Tensors that are another one times a scalar, by name: the other one."""
    found: dict[str, str] = {}
    for e in graph.einsums:
        tensors = [t for t in e.inputs if t.indices]
        if e.map is Map.MUL and len(tensors) == 1 and not e.reduced and tensors[0].indices == e.output.indices:
            found[e.output.name] = tensors[0].name
    return found


@dataclass(frozen=True)
class _Match:
    """Which tensors and indices of a graph the pattern's stand for, as far as known.

    Attributes:
        common: indices that every tensor of the graph carries.
        stands_for: scaled tensors, by name.
        tensors, indices: by the pattern's names.
    """

    common: set[Index]
    stands_for: Mapping[str, str]
    tensors: Mapping[str, str] = field(default_factory=dict)
    indices: Mapping[str, Index] = field(default_factory=dict)

    def extended(self, pattern: Einsum, einsum: Einsum) -> _Match | None:
        """The match with *einsum* as *pattern*; ``None`` when it is not. Factors may change places."""
        if (pattern.map, pattern.reduce) != (einsum.map, einsum.reduce):
            return None
        orders = [einsum.inputs, einsum.inputs[::-1]] if einsum.map is Map.MUL else [einsum.inputs]
        for inputs in orders:
            match: _Match | None = self
            for p, t in zip((*pattern.inputs, pattern.output), (*inputs, einsum.output), strict=True):
                match = match._with(p, t) if match is not None else None
            if match is not None:
                return match
        return None

    def _with(self, pattern: Tensor, tensor: Tensor) -> _Match | None:
        name = self.stands_for.get(tensor.name, tensor.name)
        own = [i for i in tensor.indices if i not in self.common and i.extent != 1]
        if self.tensors.get(pattern.name, name) != name or len(own) != len(pattern.indices):
            return None
        indices = dict(self.indices)
        if any(indices.setdefault(p.name, i) != i for p, i in zip(pattern.indices, own, strict=True)):
            return None
        return replace(self, tensors={**self.tensors, pattern.name: name}, indices=indices)

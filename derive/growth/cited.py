"""Lower bounds from the literature, read in a graph's own symbols. They are cited, not derived, and say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sympy as sp

from derive.graph import Graph
from derive.growth.cone import Cone
from derive.growth.lower import Bound
from derive.growth.parameters import Parameters
from derive.growth.reading import read_condition, read_monomial
from derive.symbols import M
from derive.theorems import speaks_of, theorems


def cited_bounds(
    graph: Graph, parameters: Parameters, region: Cone, alike: Mapping[sp.Symbol, sp.Expr]
) -> Iterator[Bound]:
    """What the theorems that speak of *graph* say, each monomial with the regime in which the paper states it."""
    for theorem in theorems():
        reading = speaks_of(theorem, graph, alike)
        if reading is None:
            continue
        own = {name: sp.Symbol(f"theorem_{name}", positive=True) for name in reading.sizes} | {"M": M}
        sizes = {own[name]: size for name, size in reading.sizes.items()}
        for written, where in theorem.classes:
            conditions = [c for part in where.split(" and ") for c in read_condition(part, own)] if where else []
            normals = [parameters.normal((small.xreplace(sizes), big.xreplace(sizes))) for small, big in conditions]
            monomial = read_monomial(written, own).xreplace(sizes) * reading.copies.xreplace(dict(alike))
            yield Bound(
                monomial,
                region.cut_all(normals),
                None,
                "cited",
                theorem.name,
                theorem.source,
                {},
                sp.Integer(0),
                f"assumes {' and '.join(theorem.assumes)}; {theorem.note}; statement taken {theorem.read}",
            )

"""The class of the memory that a schedule needs beside its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from derive.footprint import spilled
from derive.growth.cone import Cone
from derive.growth.parameters import Parameters, exponents_of
from derive.growth.program import leading
from derive.schedule import Schedule


def workspace(
    schedule: Schedule, parameters: Parameters, region: Cone, alike: Mapping[sp.Symbol, sp.Expr]
) -> tuple[sp.Expr, ...]:
    """Monomials of the elements that pass between kernels, or that a kernel keeps in memory while it runs; none when empty.

    Source: Dao et al. 2022, arXiv:2205.14135, theorem 1 (O(N) beside inputs and output).
    """
    sizes = []
    for kernel in schedule.kernels:
        kept = [t for t in schedule.outputs_of(kernel) if t.name not in schedule.graph.outputs]
        sizes += [t.size.xreplace(dict(alike)) for t in (*kept, *spilled(schedule, kernel))]
    forms = [parameters.form(exponents_of(size)) for size in sizes if size != 1]
    return tuple(parameters.monomial(f) for f in leading(region, forms)) if forms else ()

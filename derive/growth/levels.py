"""Several memories at once: registers inside shared memory inside the L2, each with tiles of its own, one inside another.

Each boundary runs the same loop nest with its own tiles and its own capacity, so its class is the one-level class with its
capacity for M. What has to be shown is that one choice of tiles serves all boundaries: for the monomials that lead, some tiles

    t_1 <= t_2 <= ...,    F(t_l) <= M_l,    traffic_l(t_l) <= the leading monomial of level l,    for every l

exist. That is a linear program in logarithms; where it has a solution at every extreme ray of a region, it has one throughout.

Source: the nesting of tiles is that of Abbott & Zardini 2024, arXiv:2412.03317, section 4.2 (costs add up over levels).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

import sympy as sp

from derive.growth.classes import Growth, growth
from derive.growth.cone import Cone
from derive.growth.count import Count
from derive.growth.linear import ZERO, Optimum, Vector, minimise, minus
from derive.growth.parameters import Condition, Parameters, exponents_of
from derive.growth.program import Program
from derive.schedule import Kernel, Schedule
from derive.symbols import M

ONE = Fraction(1)


@dataclass(frozen=True)
class Level:
    """One boundary.

    Attributes:
        capacity: elements that the memory inside it holds.
        growth: the class of what crosses it.
    """

    capacity: sp.Symbol
    growth: Growth


@dataclass(frozen=True)
class Nested:
    """A schedule at several boundaries.

    Attributes:
        levels: innermost first.
        together: whether one nested choice of tiles reaches every level's class, all over the region.
    """

    levels: tuple[Level, ...]
    together: bool


def nested(
    schedule: Schedule,
    capacities: Sequence[sp.Symbol],
    alike: Mapping[sp.Symbol, sp.Expr] | None = None,
    where: Sequence[Condition] = (),
    own: Growth | None = None,
) -> Nested | None:
    """The classes at each boundary, innermost first; ``None`` unless one kernel has tiles to choose.

    Args:
        schedule: what is run.
        capacities: a symbol for each memory, innermost first.
        alike: symbols to count as one.
        where: the regime that is assumed.
        own: the class at one boundary, where it is known already.

    Raises:
        DomainError: as ``growth`` does.
    """
    alike = alike or {}
    tiled = [k for k in schedule.kernels if any(x.tile.free_symbols for x in k.loops)]
    if len(tiled) != 1:
        return None
    order = [*where, *pairwise(capacities)]
    own = own or growth(schedule, alike, where, constants=False)
    levels = [Level(c, _renamed(own, c, order, capacities)) for c in capacities]
    parameters = levels[0].growth.parameters
    together = all(
        _fit(schedule, tiled[0], alike, tuple(where), parameters, capacities, leads, region)
        for leads, region in _cells(levels)
    )
    return Nested(tuple(levels), together)


def _renamed(own: Growth, capacity: sp.Symbol, order: Sequence[Condition], capacities: Sequence[sp.Symbol]) -> Growth:
    """The class with *capacity* for M, in parameters that hold every capacity."""
    symbols = tuple(sorted({*(s for s in own.parameters.symbols if s != M), *capacities}, key=str))
    parameters = replace(own.parameters, symbols=symbols)
    region = Cone.orthant(len(symbols)).cut_all(parameters.normal(c) for c in order)

    def moved(cone: Cone) -> Cone:
        conditions = own.parameters.conditions(cone)
        return region.cut_all(parameters.normal((a.subs(M, capacity), b.subs(M, capacity))) for a, b in conditions)

    leads = tuple(
        replace(lead, monomial=lead.monomial.subs(M, capacity), region=moved(lead.region), tilings=())
        for lead in own.leads
    )
    return Growth(parameters, moved(own.region), leads, ())


def _cells(levels: Sequence[Level]) -> list[tuple[tuple[sp.Expr, ...], Cone]]:
    """The monomials that lead at each level, with the region where they do so together."""
    found = []
    for leads in product(*(level.growth.leads for level in levels)):
        region = levels[0].growth.region
        for lead in leads:
            region = region.cut_all(lead.region.normals)
        if region.has_interior:
            found.append((tuple(lead.monomial for lead in leads), region))
    return found


def _fit(
    schedule: Schedule,
    kernel: Kernel,
    alike: Mapping[sp.Symbol, sp.Expr],
    where: tuple[Condition, ...],
    parameters: Parameters,
    capacities: Sequence[sp.Symbol],
    leads: Sequence[sp.Expr],
    region: Cone,
) -> bool:
    """Whether nested tiles reach *leads* at every ray of *region*."""
    count = Count(schedule, kernel, alike, where)
    inner = Parameters(tuple(sorted({*(s for s in parameters.symbols if s not in capacities), M}, key=str)))
    program = count.program(inner, kernel, up=True)
    rows: list[list[Fraction]] = []
    rights: list[Vector] = []
    width = len(program.tiles)
    for level, (capacity, lead) in enumerate(zip(capacities, leads, strict=True)):
        goal = parameters.form(exponents_of(lead))
        for row in program.traffic:
            here = _form(program, row.form, parameters, capacity)
            rows.append(_placed([-a for a in row.tiles], level, width, len(capacities)))
            rights.append(minus(here, goal))
        for row in program.limits:
            rows.append(_placed([-a for a in row.tiles], level, width, len(capacities)))
            rights.append(_form(program, row.form, parameters, capacity))
        if level:
            for n in range(width):
                nest = [ZERO] * (width * len(capacities))
                nest[level * width + n], nest[(level - 1) * width + n] = ONE, -ONE
                rows.append(nest)
                rights.append(tuple([ZERO] * len(parameters.symbols)))
    costs = [(ONE,)] * (width * len(capacities))
    return all(isinstance(minimise(costs, rows, rights, [Fraction(x) for x in ray]), Optimum) for ray in region.rays)


def _placed(entries: Sequence[Fraction], level: int, width: int, levels: int) -> list[Fraction]:
    """A row's coefficients among the tiles of all levels."""
    return [*[ZERO] * (level * width), *entries, *[ZERO] * ((levels - level - 1) * width)]


def _form(program: Program, form: Vector, parameters: Parameters, capacity: sp.Symbol) -> Vector:
    """*form*, in one M, as a form in all parameters with *capacity* for M."""
    by_symbol = {capacity if s == M else s: x for s, x in zip(program.parameters.symbols, form, strict=True)}
    return tuple(by_symbol.get(s, ZERO) for s in parameters.symbols)

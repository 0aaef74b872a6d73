"""The tropical linear program of a schedule's tiles: the class of its traffic over all tiles that fit.

Traffic and footprint are sums of monomials in the tile sizes. In logarithms, up to constants,

    minimise z   with   z >= each traffic monomial,   each limit monomial <= 0   (footprint / M, tile / extent),   tiles >= 0.

The dual's feasible set depends on no parameter, so the optimum is the largest of finitely many forms, one a vertex of the
dual: the class. Instead of enumerating all vertices, of which there may be very many, ``envelope`` asks for the optimum at the
extreme rays of the region under the forms it already has. An answer above them is a new form; when there is none, they are
all: the optimum is convex in the parameters, so what holds at the rays holds between them. Infeasible rays give the
conditions, such as d <= M, under which any tiles fit.

Source: Benders 1962 (the cutting scheme); Gal & Nedoma 1972, Multiparametric linear programming.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import sympy as sp

from derive.errors import DomainError
from derive.growth.cone import Cone, Form, primitive
from derive.growth.linear import ZERO, Infeasible, Optimum, Rows, Vector, dot, minus
from derive.growth.parameters import Condition, Exponents, Parameters

ONE = Fraction(1)
MOST_TILINGS = 6
"""Formulas for the tiles of one monomial that are looked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One monomial of the program.

    Attributes:
        says: the monomial as it stands in the count, or ``small <= big`` for a limit.
        tiles: its exponent in each tile.
        form: the rest of it.
    """

    says: str
    tiles: Vector
    form: Vector


@dataclass(frozen=True)
class Program:
    """Traffic to be kept small and limits to be kept, in tiles and parameters.

    Attributes:
        parameters: what the class speaks of.
        tiles: what is chosen.
        extents: the largest value of each tile.
        traffic: monomials whose largest is to be small.
        limits: monomials that may not exceed 1.
    """

    parameters: Parameters
    tiles: tuple[sp.Symbol, ...]
    extents: tuple[Vector, ...]
    traffic: tuple[Row, ...]
    limits: tuple[Row, ...]

    def row(self, says: str, monomial: Exponents) -> Row:
        """*monomial* as a row."""
        return Row(says, tuple(monomial.get(t, ZERO) for t in self.tiles), self.parameters.form(monomial))

    def solved(self, at: Sequence[int]) -> Optimum | Infeasible:
        """The best tiles at the logarithms *at*, small ones preferred; the point holds z's excess first, then the tiles."""
        return self._solved(at, [(ZERO, ONE)] * len(self.tiles))

    def inside(self, at: Sequence[int]) -> dict[sp.Symbol, Fraction]:
        """Logarithms of best tiles that leave every term smaller that any best tiles leave smaller, at the logarithms *at*.

        They are the mean of the best tiles that are smallest, and of those that are largest, in each tile.
        """
        found = []
        for n in range(len(self.tiles)):
            costs = [(ZERO, ONE if i == n else ZERO) for i in range(len(self.tiles))]
            found += [self._solved(at, costs), self._solved(at, costs, largest=n)]
        points = [[dot(x, [Fraction(y) for y in at]) for x in f.point[1:]] for f in found if isinstance(f, Optimum)]
        return {t: sum((p[n] for p in points), ZERO) / len(points) for n, t in enumerate(self.tiles)}

    def _solved(self, at: Sequence[int], costs: Sequence[Vector], largest: int | None = None) -> Optimum | Infeasible:
        """The best tiles, among them those with the smallest *costs*, or with the *largest* tile of that number."""
        asked, costs = self._asked, [(ONE, ZERO), *costs]
        if largest is not None:  # one more variable, what the tile lacks of its extent
            rows = [(*row, ZERO) for row in asked.rows]
            rows.append((ZERO, *(ONE if n == largest else ZERO for n in range(len(self.tiles))), ONE))
            asked = Rows(tuple(rows), (*asked.rights, self.extents[largest]))
            costs = [(ONE, ZERO), *[(ZERO, ZERO)] * len(self.tiles), (ZERO, ONE)]
        found = asked.minimise(costs, at)
        if isinstance(found, Infeasible):
            return found

        value = tuple(x + low for x, low in zip(found.value, self._lowest, strict=True))
        return Optimum(value, found.weights, found.point[: 1 + len(self.tiles)])

    @cached_property
    def _lowest(self) -> Vector:
        """A form below the optimum: the first monomial at its smallest, and less."""
        first = self.traffic[0]
        lowest = [x - ONE for x in first.form]
        for exponent, extent in zip(first.tiles, self.extents, strict=True):
            lowest = [x + min(exponent, ZERO) * e for x, e in zip(lowest, extent, strict=True)]
        return tuple(lowest)

    @cached_property
    def _asked(self) -> Rows:
        """The rows in z's excess over ``_lowest`` and the tiles."""
        rows = [(ONE, *(-a for a in row.tiles)) for row in self.traffic]
        rows += [(ZERO, *(-a for a in row.tiles)) for row in self.limits]
        rights = [minus(row.form, self._lowest) for row in self.traffic]
        return Rows(tuple(rows), (*rights, *(row.form for row in self.limits)))

    def rows(self) -> tuple[Row, ...]:
        """Traffic and limits, in the order of an optimum's weights."""
        return (*self.traffic, *self.limits)


@dataclass(frozen=True)
class Tiling:
    """Tiles that reach the optimum.

    Attributes:
        region: where these do.
        tiles: each as a form.
    """

    region: Cone
    tiles: Mapping[sp.Symbol, Vector]


@dataclass(frozen=True)
class Piece:
    """One monomial of the class, with both certificates.

    Attributes:
        form: its logarithm.
        weights: the dual vertex: the weighted mean of these rows is the monomial, whatever the tiles, so no tiles do better.
        cell: where it is the largest of the class.
        tilings: the primal: tiles that reach it, over the whole cell, or the first ``MOST_TILINGS`` of many. That some tiles
            reach it everywhere was shown at the cell's rays.
    """

    form: Vector
    weights: Mapping[str, Fraction]
    cell: Cone
    tilings: tuple[Tiling, ...]


@dataclass(frozen=True)
class Envelope:
    """The optimum of a program as the largest of finitely many forms.

    Attributes:
        region: where any tiles fit.
        pieces: the forms that lead somewhere in it.
        passed: forms that the terms of the count take at those tiles, each with where, and that never lead there.
    """

    region: Cone
    pieces: tuple[Piece, ...]
    passed: tuple[tuple[Vector, Cone], ...]


@lru_cache(maxsize=256)
def envelope(program: Program, region: Cone) -> Envelope:
    """The class of *program* within *region*.

    Raises:
        DomainError: no tiles fit anywhere inside *region*.
    """
    region = feasible(program, region)
    found: dict[Vector, Optimum] = {}

    def ask(at: Form) -> Optimum:
        answer = program.solved(at)
        assert isinstance(answer, Optimum), "the region was cut to where tiles fit"
        return answer

    first = ask(region.middle)
    found[first.value] = first
    above = _lifted(region, first.value)
    checked: set[Form] = set()
    while (ray := next((r for r in above.rays if r not in checked and any(r[:-1])), None)) is not None:
        checked.add(ray)
        answer = ask(ray[:-1])
        if dot(answer.value, [Fraction(x) for x in ray[:-1]]) > ray[-1]:
            found.setdefault(answer.value, answer)
            above = above.cut((*(-x for x in answer.value), ONE))
    names = [row.says for row in program.rows()]
    kept = leading(region, found)
    pieces = []
    for form in kept:
        cell = led(region, form, kept)
        weights = {name: w for name, w in zip(names, found[form].weights, strict=True) if w}
        pieces.append(Piece(form, weights, cell, tuple(_tilings(program, form, cell))))
    passed: dict[Vector, Cone] = {}
    for tiling in (t for piece in pieces for t in piece.tilings):
        for row in program.traffic:
            passed.setdefault(_at(row, tuple(tiling.tiles.values())), tiling.region)
    return Envelope(region, tuple(pieces), tuple((f, where) for f, where in passed.items() if f not in kept))


def feasible(program: Program, region: Cone) -> Cone:
    """The part of *region* where some tiles satisfy the limits.

    Raises:
        DomainError: it has no inside.
    """
    checked: set[Form] = set()
    while (ray := next((r for r in region.rays if r not in checked), None)) is not None:
        answer = program.solved(ray)
        if isinstance(answer, Optimum):
            checked.add(ray)
            continue
        region = region.cut(answer.needs)
        if not region.has_interior:
            small, big = program.parameters.condition(answer.needs)
            raise DomainError(f"no tiles fit: they need {small} <= {big}, which the regime rules out")
    return region


def leading(region: Cone, forms: Mapping[Vector, object] | Sequence[Vector]) -> tuple[Vector, ...]:
    """Those of *forms* that are the largest along a whole part of *region*, in their order."""
    forms = tuple(dict.fromkeys(forms))
    above = _lifted(region, forms[0])
    for form in forms[1:]:
        above = above.cut((*(-x for x in form), ONE))
    return tuple(f for f in forms if above.is_facet(primitive((*(-x for x in f), ONE))))


def led(region: Cone, form: Vector, forms: Iterable[Vector]) -> Cone:
    """The part of *region* where *form* is the largest of *forms*."""
    return region.cut_all(minus(form, other) for other in forms if other != form)


def _lifted(region: Cone, form: Vector) -> Cone:
    """The points (p, t) over *region* with t at least *form*."""
    normals = [(*n, 0) for n in region.normals]
    rays = [primitive((*map(Fraction, r), dot(form, [Fraction(x) for x in r]))) for r in region.rays]
    upwards = (*[0] * region.size, 1)
    return Cone((*normals, primitive((*(-x for x in form), ONE))), (*rays, upwards))


def _tilings(program: Program, form: Vector, cell: Cone, room: int = MOST_TILINGS) -> list[Tiling]:
    """Tiles that reach *form* in *cell*, at most *room* formulas."""
    if room < 1:
        return []
    answer = program.solved(cell.middle)
    assert isinstance(answer, Optimum), "a cell lies where tiles fit"
    tiles = answer.point[1:]
    needs = [tuple(e) for e in tiles]  # a tile is at least 1
    for row in program.traffic:
        needs.append(minus(form, _at(row, tiles)))
    needs += [tuple(-x for x in _at(row, tiles)) for row in program.limits]
    found = [Tiling(cell.cut_all(needs), dict(zip(program.tiles, tiles, strict=True)))]
    rest = cell
    for need in needs:
        if rest.implies(need):
            continue
        outside = rest.cut([-x for x in need])
        if outside.has_interior:
            found += _tilings(program, form, outside, room - len(found))
        rest = rest.cut(need)
    return found


def _at(row: Row, tiles: Sequence[Vector]) -> Vector:
    """The form of *row* when the tiles are those forms."""
    total = list(row.form)
    for exponent, tile in zip(row.tiles, tiles, strict=True):
        if exponent:
            total = [x + exponent * y for x, y in zip(total, tile, strict=True)]
    return tuple(total)


def region_of(parameters: Parameters, conditions: Sequence[Condition]) -> Cone:
    """Where every parameter is at least 1 and *conditions* hold.

    Raises:
        DomainError: they hold together nowhere inside.
    """
    region = Cone.orthant(len(parameters.symbols))
    for condition in conditions:
        region = region.cut(parameters.normal(condition))
        if not region.has_interior:
            words = " and ".join(f"{small} <= {big}" for small, big in conditions)
            raise DomainError(
                f"the regime {words} contradicts itself at {condition[0]} <= {condition[1]}: no sizes above 1 satisfy it"
            )
    return region

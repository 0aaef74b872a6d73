"""What one kernel contributes to a class: its count held between sums of monomials, its limits, and its constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import sympy as sp

from derive.buffers import working_set
from derive.coverage import DensityCoverage, coverage
from derive.errors import DomainError
from derive.growth.cone import Cone
from derive.growth.constants import best_constant, constant_at
from derive.growth.linear import Infeasible, Vector, dot, minus
from derive.growth.optimum import Problem
from derive.growth.parameters import Condition, Parameters, exponents_of, plain, split
from derive.growth.posynomial import Facts, Term, above, below, smooth
from derive.growth.program import Envelope, Program, Row, envelope
from derive.growth.tile_bounds import TileBounds
from derive.schedule import Kernel, Loop, Schedule
from derive.substitution import free, put
from derive.symbols import MEANINGS, M
from derive.traffic import traffic_under


class Count:
    """The traffic of one kernel between two sums of monomials, and its limits.

    Attributes:
        schedule, kernel: which one.
        alike: symbols counted as one.
        where: the regime that is assumed.
        extents: the largest value of each of its tiles.
        footprint: elements it holds at once, a sum of monomials in the tiles.
    """

    def __init__(
        self, schedule: Schedule, kernel: Kernel, alike: Mapping[sp.Symbol, sp.Expr], where: tuple[Condition, ...]
    ) -> None:
        self.schedule, self.kernel, self.alike, self.where = schedule, kernel, dict(alike), where
        loops = [loop for loop in kernel.loops if loop.tile.free_symbols]
        self.extents = {s: loop.extent.xreplace(self.alike) for loop in loops for s in loop.tile.free_symbols}
        self.footprint = working_set(schedule, kernel).amount.xreplace(self.alike) if kernel.loops else sp.Integer(0)
        self.others: list[
            tuple[Kernel, Envelope]
        ] = []  # with single trips, as far as those fit; filled by ``envelope``

    def problem(self) -> Problem:
        """What its tiles minimise."""
        amount = self._amount(self.kernel, up=False)
        terms, _ = self._smooth(Parameters.of((amount, self.footprint)), self.kernel)
        return Problem(sp.Add(*(t.coefficient * t.monomial for t in terms)), self.footprint, self.extents)

    @property
    def is_masked(self) -> bool:
        """Whether its count is of tiles that a mask leaves."""
        return self.kernel.skips_masked and coverage(self.schedule.mask_of(self.kernel), self.kernel.loops) is not None

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """Everything whose symbols it depends on."""
        sizes = [t.size.xreplace(self.alike) for t in self.schedule.tensors_of(self.kernel)]
        mask = self.schedule.graph.mask
        kept = [s for s in free(mask.pairs) if s.name in MEANINGS] if mask is not None else []
        return (*sizes, *(s.xreplace(self.alike) for s in kept), self.footprint, *self.extents.values())

    def envelope(self, parameters: Parameters, region: Cone) -> Envelope:
        """Its class, which both bounds must have; and no tile as large as its extent may do better."""
        up, low = (self.program(parameters, self.kernel, up=up) for up in (True, False))
        found = envelope(up, region)
        if {(r.tiles, r.form) for r in up.traffic} != {(r.tiles, r.form) for r in low.traffic}:
            other = envelope(low, region)
            if {p.form for p in other.pieces} != {p.form for p in found.pieces}:
                raise DomainError(
                    f"kernel {self.kernel.name} moves O({_sum(parameters, found)}) and Omega({_sum(parameters, other)}): "
                    "the bounds on its sums do not meet; state with --where how the sizes compare, or count it exactly with "
                    "`derive explain`"
                )
        for kernel in self._single_trips():
            try:
                other = envelope(self.program(parameters, kernel, up=True), region)
            except DomainError:
                continue  # a tile as large as that extent fits nowhere in the region
            self.others.append((kernel, other))
            if _improves(other, found):
                raise DomainError(
                    f"kernel {self.kernel.name} moves less where {kernel.nest}, which is a regime of its own: "
                    f"Theta({_sum(parameters, other)})"
                )
        return found

    def constant(self, parameters: Parameters, form: Vector, cell: Cone) -> sp.Expr | None:
        """What stands in front of the monomial *form* in this kernel's count at its best tiles; 0 where it moves less.

        A single trip may save a constant; where it does so in a part of *cell* alone, there is not one number.
        """
        found = self._constant(self.kernel, parameters, form, cell)
        parts = [(k, cell.cut_all(p.cell.normals)) for k, other in self.others for p in other.pieces if p.form == form]
        for kernel, part in parts if found else ():
            if part.has_interior and (less := self._constant(kernel, parameters, form, part)) and less < found:
                if not all(map(cell.implies, part.normals)):
                    return None
                found = less
        return found

    def _constant(self, kernel: Kernel, parameters: Parameters, form: Vector, cell: Cone) -> sp.Expr | None:
        """The same for *kernel*, which is this one or has some single trips."""
        try:
            terms, held = self._smooth(parameters, kernel)
        except DomainError:  # an extreme without one winner throughout
            return None
        program = self.program(parameters, kernel, up=True)
        answer = program.solved(cell.middle)
        at = [Fraction(x) for x in cell.middle]
        if isinstance(answer, Infeasible) or dot(answer.value, at) < dot(form, at):
            return sp.Integer(0)
        sizes = program.inside(cell.middle)
        extents = {t: exponents_of(self.extents[t]) for t in sizes}
        pinned = any(dot(parameters.form(e), at) == sizes[t] for t, e in extents.items())
        if self.is_masked and (pinned or not self._tends(parameters, kernel, at, sizes, terms, dot(form, at))):
            return None  # the sums over a mask's tiles tend to its pairs only while tiles are small against it
        return best_constant(parameters, form, cell.middle, sizes, extents, terms, held)

    def _tends(
        self,
        parameters: Parameters,
        kernel: Kernel,
        at: list[Fraction],
        sizes: Mapping[sp.Symbol, Fraction],
        terms: list[Term],
        goal: Fraction,
    ) -> bool:
        """Whether the bounds from both sides have the same leading terms at those tiles, or keys are seen from the first on.

        Under a window the sums tend to its pairs only while tiles are smaller than it is.
        """
        mask = self.schedule.graph.mask
        if mask is not None and mask.starts_at_key_0:
            return True

        def leading(of: list[Term]) -> dict[Vector, sp.Rational]:
            found: dict[Vector, sp.Rational] = {}
            for term in of:
                size = dot(parameters.form(term.exponents), at)
                size += sum((x * term.exponents.get(t, Fraction(0)) for t, x in sizes.items()), Fraction(0))
                if size == goal:
                    key = (*parameters.form(term.exponents), *(term.exponents.get(t, Fraction(0)) for t in sizes))
                    found[key] = found.get(key, sp.Integer(0)) + term.coefficient
            return found

        amount = self._amount(kernel, up=True)
        facts, _ = self._known(amount, parameters, kernel)
        bound = above(amount, facts)
        known = not any(t in term.exponents for term in bound for t in self.extents if t not in sizes)
        return known and leading(bound) == leading(terms)

    def constant_at(
        self, parameters: Parameters, form: Vector, cell: Cone, tiles: Mapping[sp.Symbol, sp.Expr]
    ) -> sp.Expr | None:
        """The same at given *tiles*, written in the parameters; roundings are dropped."""
        try:
            terms, _ = self._smooth(parameters, self.kernel)
        except DomainError:
            return None
        plain = {
            t: _unrounded(e.xreplace(self.alike)) for t, e in tiles.items() if e.free_symbols and t in self.extents
        }
        used = {t for term in terms for t in term.exponents if t in self.extents}
        if not used <= plain.keys():
            return None
        at = [Fraction(x) for x in cell.middle]
        sizes = {t: dot(parameters.form(split(plain[t])[1]), at) for t in used}
        if any(size >= dot(parameters.form(exponents_of(self.extents[t])), at) for t, size in sizes.items()):
            return None  # in this region the paper's tile is as large as the whole extent
        if self.is_masked and not self._tends(parameters, self.kernel, at, sizes, terms, dot(form, at)):
            return None
        return constant_at(exponents_of(parameters.monomial(form)), plain, terms)

    @lru_cache(maxsize=64)  # noqa: B019  (bounded)
    def _smooth(self, parameters: Parameters, kernel: Kernel) -> tuple[list[Term], list[Term]]:
        """The signed terms of *kernel*'s count and of its footprint."""
        amount = self._amount(kernel, up=False, tending=True)
        facts, footprint = self._known(amount, parameters, kernel)
        return smooth(amount, facts), smooth(footprint, facts) if footprint != 0 else []

    def _known(self, amount: sp.Expr, parameters: Parameters, kernel: Kernel) -> tuple[Facts, sp.Expr]:
        """What is known of *amount*'s symbols, and the footprint; a tile of a single trip is as large as its extent."""
        bounds = (*self._extents(kernel).items(), *self.where)
        replaced = {x.tile: x.extent.xreplace(self.alike) for x in self.kernel.loops if x not in kernel.loops}
        facts = Facts.of((amount, self.footprint, *parameters.symbols), bounds, parameters.shares)
        return facts, sp.expand(self.footprint.xreplace(replaced))

    def _extents(self, kernel: Kernel) -> dict[sp.Symbol, sp.Expr]:
        return {t: e for t, e in self.extents.items() if any(t in x.tile.free_symbols for x in kernel.loops)}

    def _single_trips(self) -> list[Kernel]:
        """The kernel with one trip of some sequential loops, where that changes what stays on chip."""
        loops = [loop for loop in self.kernel.sequential if loop.tile.free_symbols]
        if not self._amount(self.kernel, up=True).has(sp.Piecewise):
            return []
        chosen = [subset for n in range(1, len(loops) + 1) for subset in combinations(loops, n)]
        nests = [tuple(Loop(x.indices, x.extent, x.grid) if x in c else x for x in self.kernel.loops) for c in chosen]
        return [self.kernel.with_(loops=nest) for nest in nests]

    def _amount(self, kernel: Kernel, *, up: bool, tending: bool = False) -> sp.Expr:
        """Elements that *kernel* moves, sums over a mask's tiles replaced by their bounds."""
        return self._moved(kernel, up, tending) if kernel.skips_masked else self._moved(kernel, True, False)

    @lru_cache(maxsize=64)  # noqa: B019  (bounded)
    def _moved(self, kernel: Kernel, up: bool, tending: bool) -> sp.Expr:
        schedule = self.schedule if kernel is self.kernel else self.schedule.replace((self.kernel,), kernel)
        met = coverage(schedule.mask_of(kernel), kernel.loops) if kernel.skips_masked else None
        bounds: object = met
        if isinstance(met, DensityCoverage):
            bounds = replace(met, met_once=sp.Integer(int(up)))
        elif met is not None:
            bounds = TileBounds(met, up, tending)
        return put(traffic_under(schedule, kernel, bounds).total.amount, self.alike)  # type: ignore[arg-type]

    @lru_cache(maxsize=64)  # noqa: B019  (bounded)
    def program(self, parameters: Parameters, kernel: Kernel, *, up: bool) -> Program:
        """The tropical linear program of its tiles, with the count bounded from above or below."""
        amount = self._amount(kernel, up=up)
        extents, (facts, footprint) = self._extents(kernel), self._known(amount, parameters, kernel)
        held = below(footprint, facts) if footprint != 0 else []
        terms = (above if up else below)(amount, facts)
        empty = Program(parameters, tuple(extents), (), (), ())
        sizes = [exponents_of(e) for e in extents.values()]
        limits = [
            empty.row(f"{t.monomial} <= M", {**t.exponents, M: t.exponents.get(M, 0) - Fraction(1)}) for t in held
        ]
        for tile, size in zip(extents, sizes, strict=True):
            ratio = {tile: Fraction(1), **{s: -x for s, x in size.items()}}
            limits.append(empty.row(f"{tile} <= {extents[tile]}", ratio))
        return Program(
            parameters,
            tuple(extents),
            tuple(parameters.form(size) for size in sizes),
            _distinct(empty.row(str(t.monomial), t.exponents) for t in terms),
            _distinct(limits),
        )


def _distinct(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Each monomial once."""
    return tuple({(row.tiles, row.form): row for row in rows}.values())


def _unrounded(tile: sp.Expr) -> sp.Expr:
    return tile.replace(lambda e: isinstance(e, sp.ceiling), lambda e: e.args[0])


def _sum(parameters: Parameters, found: Envelope) -> str:
    return " + ".join(plain(parameters.monomial(p.form)) for p in found.pieces)


def _improves(other: Envelope, found: Envelope) -> bool:
    """Whether *other* is smaller than *found* along a whole part of the region."""
    for piece in found.pieces:
        cell = piece.cell.cut_all(other.region.normals)
        for rival in other.pieces:
            part = cell.cut_all(rival.cell.normals).cut(minus(piece.form, rival.form))
            if part.has_interior and rival.form != piece.form:
                return True
    return False

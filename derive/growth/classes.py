"""The Theta class of a schedule: what its SM-side traffic must grow with, over all tiles that fit, and where each term leads.

Every kernel is a program of its own (its tiles are chosen for it); the schedule's class is the sum of theirs, less what is
dominated. Counts with ceilings, masks and cases are held between two sums of monomials; the class is that of both, or it is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import sympy as sp

from derive.buffers import working_set
from derive.coverage import coverage
from derive.errors import DomainError
from derive.growth.cone import Cone
from derive.growth.constants import best_constant, constant_at
from derive.growth.dominance import Dominated, dominated
from derive.growth.linear import Infeasible, Vector, dot
from derive.growth.parameters import Condition, Parameters, exponents_of, split
from derive.growth.posynomial import Facts, Term, above, below, smooth
from derive.growth.program import Envelope, Piece, Program, Row, envelope, leading, region_of
from derive.growth.tile_bounds import TileBounds
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import M
from derive.traffic import traffic_under


@dataclass(frozen=True)
class Lead:
    """One monomial of a class.

    Attributes:
        monomial: the monomial.
        region: where it is the largest.
        kernel: the kernel it comes from.
        weights: the dual certificate: the weighted geometric mean of these terms and limits of the kernel is the monomial for
            all tiles, so no tiles make the traffic smaller.
        tilings: the primal certificate: tiles that reach it, each with the region where those do.
        constant: the number in front of it at the best tiles; ``None`` where that has no closed form.
        published: the number in front of it at the tiles that were asked about.
    """

    monomial: sp.Expr
    region: Cone
    kernel: Kernel
    weights: Mapping[str, Fraction]
    tilings: tuple[tuple[Cone, Mapping[sp.Symbol, sp.Expr]], ...]
    constant: sp.Expr | None = None
    published: sp.Expr | None = None


@dataclass(frozen=True)
class Growth:
    """A Theta class: never a byte count.

    Attributes:
        parameters: what it speaks of.
        region: where any tiles fit; outside it the schedule cannot run.
        leads: the monomials that are the largest somewhere; the class is Theta of their sum.
        dropped: monomials of the count that never lead, each with why.
    """

    parameters: Parameters
    region: Cone
    leads: tuple[Lead, ...]
    dropped: tuple[Dominated, ...]

    @property
    def monomials(self) -> tuple[sp.Expr, ...]:
        """The monomials, in the order in which a paper writes them."""
        return tuple(lead.monomial for lead in self.leads)

    @property
    def total(self) -> sp.Expr:
        """The sum of the monomials."""
        return sp.Add(*self.monomials)

    @property
    def needs(self) -> tuple[Condition, ...]:
        """What must hold for any tiles to fit."""
        return tuple(self.parameters.condition(f) for f in self.region.facets)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``needs``, and where the monomial that shrinks as M grows is the largest, when there is one such monomial."""
        shrinking = [lead for lead in self.leads if exponents_of(lead.monomial).get(M, 0) < 0]
        where = shrinking[0].region.facets if len(shrinking) == 1 else self.region.facets
        return tuple(self.parameters.condition(f) for f in where)


def growth(
    schedule: Schedule,
    alike: Mapping[sp.Symbol, sp.Expr] | None = None,
    where: Iterable[Condition] = (),
    also: Iterable[sp.Basic] = (),
    tiles: Mapping[sp.Symbol, sp.Expr] | None = None,
) -> Growth:
    """The Theta class of the elements that cross into the SMs, over all tiles that fit M elements.

    Args:
        schedule: its tile sizes are those symbols that stand in its loops.
        alike: symbols to count as one, e.g. N_q and N_k as N.
        where: the regime that is assumed, as small <= big.
        also: expressions whose symbols are parameters too, so that classes of several schedules can be compared.
        tiles: a paper's tiles, for the constant at those beside the best one.

    Raises:
        DomainError: a count that is not held between monomials of one class, a regime that contradicts itself, or one in
            which no tiles fit.
    """
    alike, where = alike or {}, tuple(where)
    counts = [_Count(schedule, kernel, alike, where) for kernel in schedule.kernels]
    parameters = Parameters.of((*(e for c in counts for e in c.expressions), M, *also), ())
    parameters = Parameters(tuple(s for s in parameters.symbols if not any(s in c.extents for c in counts)))
    region = region_of(parameters, where)
    found = []
    for count in counts:
        found.append(count.envelope(parameters, region))
        region = found[-1].region
    return _joined(parameters, region, counts, found, tiles or {})


def _joined(
    parameters: Parameters,
    region: Cone,
    counts: list[_Count],
    found: list[Envelope],
    published: Mapping[sp.Symbol, sp.Expr],
) -> Growth:
    """The class of the kernels together."""
    sources: dict[Vector, tuple[Kernel, Piece]] = {}
    for count, envelope_ in zip(counts, found, strict=True):
        for piece in envelope_.pieces:
            sources.setdefault(piece.form, (count.kernel, piece))
    kept = sorted(leading(region, tuple(sources)), key=lambda f: _degree(parameters.monomial(f)))
    leads = []
    for form in kept:
        kernel, piece = sources[form]
        cell = region.cut_all([x - y for x, y in zip(form, other, strict=True)] for other in kept if other != form)
        tilings = []
        for tiling in piece.tilings:
            shared = cell.cut_all(tiling.region.normals)
            if shared.has_interior:
                tilings.append((shared, {t: parameters.monomial(f) for t, f in tiling.tiles.items()}))
        constant = _total(count.constant(parameters, form, cell) for count in counts)
        chosen = _total(count.constant_at(parameters, form, cell, published) for count in counts) if published else None
        leads.append(Lead(parameters.monomial(form), cell, kernel, piece.weights, tuple(tilings), constant, chosen))
    passed = dict.fromkeys(sources, region)
    for form, where in (item for e in found for item in e.passed):
        passed.setdefault(form, region.cut_all(where.normals))
    dropped = [dominated(parameters, where, form, kept) for form, where in passed.items() if form not in kept]
    return Growth(parameters, region, tuple(leads), tuple(dropped))


def _total(constants: Iterable[sp.Expr | None]) -> sp.Expr | None:
    """The sum of *constants*, or ``None`` while one is missing or all are zero."""
    found = list(constants)
    known = [c for c in found if c is not None]
    return sp.Add(*known) or None if len(known) == len(found) else None


class _Count:
    """The traffic of one kernel between two sums of monomials, and its limits."""

    def __init__(
        self, schedule: Schedule, kernel: Kernel, alike: Mapping[sp.Symbol, sp.Expr], where: tuple[Condition, ...]
    ) -> None:
        self.schedule, self.kernel, self.alike, self.where = schedule, kernel, dict(alike), where
        loops = [loop for loop in kernel.loops if loop.tile.free_symbols]
        self.extents = {s: loop.extent.xreplace(self.alike) for loop in loops for s in loop.tile.free_symbols}
        self.footprint = working_set(schedule, kernel).amount.xreplace(self.alike) if loops else sp.Integer(0)
        self.others: list[
            tuple[Kernel, Envelope]
        ] = []  # with single trips, as far as those fit; filled by ``envelope``

    @property
    def _is_masked(self) -> bool:
        """Whether its count has sums over the tiles that a mask leaves."""
        return self.kernel.skips_masked and coverage(self.schedule.graph.mask, self.kernel.loops) is not None

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """Everything whose symbols it depends on."""
        sizes = [t.size.xreplace(self.alike) for t in self.schedule.tensors_of(self.kernel)]
        return (*sizes, self.footprint, *self.extents.values())

    def envelope(self, parameters: Parameters, region: Cone) -> Envelope:
        """Its class, which both bounds must have; and no tile as large as its extent may do better."""
        up, low = (self._program(parameters, self.kernel, up=up) for up in (True, False))
        found = envelope(up, region)
        if {(r.tiles, r.form) for r in up.traffic} != {(r.tiles, r.form) for r in low.traffic}:
            other = envelope(low, region)
            if {p.form for p in other.pieces} != {p.form for p in found.pieces}:
                raise DomainError(
                    f"kernel {self.kernel.name} moves O({_sum(parameters, found)}) and Omega({_sum(parameters, other)}): "
                    "the bounds on its sums do not meet"
                )
        for kernel in self._single_trips():
            try:
                other = envelope(self._program(parameters, kernel, up=True), region)
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
        program, terms, held = self._program(parameters, kernel, up=True), *self._smooth(parameters, kernel)
        answer = program.solved(cell.middle)
        at = [Fraction(x) for x in cell.middle]
        if isinstance(answer, Infeasible) or dot(answer.value, at) < dot(form, at):
            return sp.Integer(0)
        sizes = program.inside(cell.middle)
        extents = {t: exponents_of(self.extents[t]) for t in sizes}
        if self._is_masked and any(dot(parameters.form(e), at) == sizes[t] for t, e in extents.items()):
            return None  # the sums over a mask's tiles tend to its pairs only while tiles are small against it
        return best_constant(parameters, form, cell.middle, sizes, extents, terms, held)

    def constant_at(
        self, parameters: Parameters, form: Vector, cell: Cone, tiles: Mapping[sp.Symbol, sp.Expr]
    ) -> sp.Expr | None:
        """The same at given *tiles*, written in the parameters; roundings are dropped."""
        terms, _ = self._smooth(parameters, self.kernel)
        plain = {
            t: _unrounded(e.xreplace(self.alike)) for t, e in tiles.items() if e.free_symbols and t in self.extents
        }
        at = [Fraction(x) for x in cell.middle]
        for term in terms:
            for tile in (t for t in term.exponents if t in self.extents):
                if tile not in plain:
                    return None
                exponents = split(plain[tile])[1]
                if dot(parameters.form(exponents), at) >= dot(parameters.form(exponents_of(self.extents[tile])), at):
                    return None  # in this region the paper's tile is as large as the whole extent
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
        schedule = self.schedule if kernel is self.kernel else self.schedule.replace((self.kernel,), kernel)
        met = coverage(schedule.graph.mask, kernel.loops) if kernel.skips_masked else None
        bounds = None if met is None else TileBounds(met, up, tending)
        return traffic_under(schedule, kernel, bounds).total.amount.xreplace(self.alike)  # type: ignore[arg-type]

    @lru_cache(maxsize=64)  # noqa: B019  (bounded)
    def _program(self, parameters: Parameters, kernel: Kernel, *, up: bool) -> Program:
        amount = self._amount(kernel, up=up)
        extents, (facts, footprint) = self._extents(kernel), self._known(amount, parameters, kernel)
        held = below(footprint, facts) if footprint != 0 else []
        terms = (above if up else below)(amount, facts)
        empty = Program(parameters, tuple(extents), (), (), ())
        sizes = [exponents_of(e) for e in extents.values()]
        limits = [
            empty.row(f"{_written(t)} <= M", {**t.exponents, M: t.exponents.get(M, 0) - Fraction(1)}) for t in held
        ]
        for tile, size in zip(extents, sizes, strict=True):
            ratio = {tile: Fraction(1), **{s: -x for s, x in size.items()}}
            limits.append(empty.row(f"{tile} <= {extents[tile]}", ratio))
        return Program(
            parameters,
            tuple(extents),
            tuple(parameters.form(size) for size in sizes),
            _distinct(empty.row(_written(t), t.exponents) for t in terms),
            _distinct(limits),
        )


def _distinct(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Each monomial once."""
    return tuple({(row.tiles, row.form): row for row in rows}.values())


def _unrounded(tile: sp.Expr) -> sp.Expr:
    return tile.replace(lambda e: isinstance(e, sp.ceiling), lambda e: e.args[0])


def _written(term: Term) -> str:
    return str(sp.Mul(*(s ** sp.Rational(x) for s, x in term.exponents.items())))


def _sum(parameters: Parameters, found: Envelope) -> str:
    return " + ".join(str(parameters.monomial(p.form)) for p in found.pieces)


def _improves(other: Envelope, found: Envelope) -> bool:
    """Whether *other* is smaller than *found* along a whole part of the region."""
    for piece in found.pieces:
        cell = piece.cell.cut_all(other.region.normals)
        for rival in other.pieces:
            part = cell.cut_all(rival.cell.normals).cut([x - y for x, y in zip(piece.form, rival.form, strict=True)])
            if part.has_interior and rival.form != piece.form:
                return True
    return False


def _degree(monomial: sp.Expr) -> tuple[Fraction, int, str]:
    """Its degree in everything but M, products before powers: the order in which a paper writes a class."""
    exponents = exponents_of(monomial)
    return sum((e for s, e in exponents.items() if s != M), Fraction(0)), -len(exponents), str(monomial)

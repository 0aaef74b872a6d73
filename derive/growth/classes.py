"""The Theta class of a schedule: what its SM-side traffic must grow with, over all tiles that fit, and where each term leads.

Every kernel is a program of its own (its tiles are chosen for it); the schedule's class is the sum of theirs, less what is
dominated. Counts with ceilings, masks and cases are held between two sums of monomials; the class is that of both, or it is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from derive.growth.cone import Cone
from derive.growth.count import Count
from derive.growth.dominance import Dominated, dominated
from derive.growth.linear import Vector
from derive.growth.optimum import Problem
from derive.growth.parameters import Condition, Parameters, exponents_of
from derive.growth.program import Envelope, Piece, leading, led, region_of
from derive.schedule import Kernel, Schedule
from derive.symbols import M


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
        return self.parameters.conditions(self.region)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``needs``, and where the monomial that shrinks as M grows is the largest, when there is one such monomial."""
        shrinking = [lead for lead in self.leads if exponents_of(lead.monomial).get(M, 0) < 0]
        return self.parameters.conditions(shrinking[0].region if len(shrinking) == 1 else self.region)


def growth(
    schedule: Schedule,
    alike: Mapping[sp.Symbol, sp.Expr] | None = None,
    where: Iterable[Condition] = (),
    also: Iterable[sp.Basic] = (),
    tiles: Mapping[sp.Symbol, sp.Expr] | None = None,
    *,
    constants: bool = True,
) -> Growth:
    """The Theta class of the elements that cross into the SMs, over all tiles that fit M elements.

    Args:
        schedule: its tile sizes are those symbols that stand in its loops.
        alike: symbols to count as one, e.g. N_q and N_k as N.
        where: the regime that is assumed, as small <= big.
        also: expressions whose symbols are parameters too, so that classes of several schedules can be compared.
        tiles: a paper's tiles, for the constant at those beside the best one.
        constants: whether constants are wanted at all; the class alone takes less time.

    Raises:
        DomainError: a count that is not held between monomials of one class, a regime that contradicts itself, or one in
            which no tiles fit.
    """
    alike, where = alike or {}, tuple(where)
    counts = [Count(schedule, kernel, alike, where) for kernel in schedule.kernels]
    expressions = (*(e for c in counts for e in c.expressions), M, *also)
    parameters = Parameters.of(expressions, (t for c in counts for t in c.extents))
    region = region_of(parameters, where)
    found = []
    for count in counts:
        found.append(count.envelope(parameters, region))
        region = found[-1].region
    return _joined(parameters, region, counts, found, tiles or {}, constants=constants)


def problems(
    schedule: Schedule, alike: Mapping[sp.Symbol, sp.Expr] | None = None, where: Iterable[Condition] = ()
) -> dict[Kernel, Problem]:
    """What each tiled kernel minimises over real tiles, ceilings dropped; kernels that skip masked tiles are left out.

    Raises:
        DomainError: a count that is no sum of monomials.
    """
    found = {}
    for kernel in schedule.kernels:
        count = Count(schedule, kernel, alike or {}, tuple(where))
        if count.extents and not count.is_masked:
            found[kernel] = count.problem()
    return found


def _joined(
    parameters: Parameters,
    region: Cone,
    counts: list[Count],
    found: list[Envelope],
    published: Mapping[sp.Symbol, sp.Expr],
    *,
    constants: bool,
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
        cell = led(region, form, kept)
        tilings = []
        for tiling in piece.tilings:
            shared = cell.cut_all(tiling.region.normals)
            if shared.has_interior:
                tilings.append((shared, {t: parameters.monomial(f) for t, f in tiling.tiles.items()}))
        constant = _total(count.constant(parameters, form, cell) for count in counts) if constants else None
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


def _degree(monomial: sp.Expr) -> tuple[Fraction, int, str]:
    """Its degree in everything but M, products before powers: the order in which a paper writes a class."""
    exponents = exponents_of(monomial)
    return sum((e for s, e in exponents.items() if s != M), Fraction(0)), -len(exponents), str(monomial)

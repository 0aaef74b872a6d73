"""Which schedule moves least, by regions of the parameters: the minimum, over schedules, of their classes.

Each schedule's class is a maximum of monomials; the best of several is a minimum of maxima. A region belongs to a monomial when
some schedule's class is that monomial there and no other schedule's is smaller. Regions are then widened, one condition after
another, while that stays true, so that what is printed is what decides: M <= d^2, and not every bound of the cell it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from derive.growth.classes import Growth
from derive.growth.cone import Cone
from derive.growth.linear import Vector, minus
from derive.growth.parameters import Condition, Parameters, exponents_of


@dataclass(frozen=True)
class Regime:
    """A region with its winner.

    Attributes:
        conditions: the region, as small <= big.
        monomial: the class there.
        schedules: every schedule that reaches it throughout the region.
        region: the same region as a cone.
    """

    conditions: tuple[Condition, ...]
    monomial: sp.Expr
    schedules: tuple[str, ...]
    region: Cone


def regimes(classes: Mapping[str, Growth], within: Cone, parameters: Parameters) -> tuple[Regime, ...]:
    """The best classes of *classes*, which all speak of *parameters*, over the region *within*."""
    return winners({name: Rival.of(found, parameters) for name, found in classes.items()}, within, parameters)


def winners(rivals: Mapping[str, Rival], within: Cone, parameters: Parameters) -> tuple[Regime, ...]:
    """Regions of *within* by the smallest of *rivals*, each as wide as that one wins."""
    found: list[Regime] = []
    for name, rival in rivals.items():
        for form in rival.forms:
            cell = within.cut_all(rival.needs).cut_all(rival.lead(form))
            for part in _won(cell, form, [r for n, r in rivals.items() if n != name]):
                if any(_inside(part, known) and known.monomial == parameters.monomial(form) for known in found):
                    continue
                region = _widened(part, within, form, rival, rivals)
                winners = tuple(n for n, r in rivals.items() if r.reaches(form, region))
                conditions = parameters.conditions(region, within)
                found.append(Regime(conditions, parameters.monomial(form), winners, region))
    kept: list[Regime] = []
    for each in found:  # one that another covers says nothing new
        if not any(_covers(other, each) for other in kept):
            kept = [*(other for other in kept if not _covers(each, other)), each]
    return tuple(sorted(kept, key=lambda r: [len(r.conditions), *map(str, r.conditions)]))


@dataclass(frozen=True)
class Rival:
    """A class as forms.

    Attributes:
        forms: it is the maximum of these,
        needs: where none of these is negative.
    """

    forms: tuple[Vector, ...]
    needs: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(found: Growth, parameters: Parameters) -> Rival:
        """That of a schedule."""
        forms = tuple(parameters.form(exponents_of(m)) for m in found.monomials)
        return Rival(forms, tuple(parameters.normal(c) for c in found.needs))

    def lead(self, form: Vector) -> Iterator[Vector]:
        """The forms that are not negative where *form* is the largest."""
        return (minus(form, other) for other in self.forms if other != form)

    def beats(self, form: Vector, region: Cone) -> bool:
        """Whether it is smaller than *form* along a whole part of *region*."""
        part = region.cut_all(self.needs).cut_all(minus(form, own) for own in self.forms if own != form)
        return form not in self.forms and part.has_interior

    def reaches(self, form: Vector, region: Cone) -> bool:
        """Whether it is *form* throughout *region*."""
        return form in self.forms and all(map(region.implies, self.needs)) and all(map(region.implies, self.lead(form)))


def _won(cell: Cone, form: Vector, rivals: list[Rival]) -> Iterator[Cone]:
    """Parts of *cell* where none of *rivals* is smaller than *form*."""
    if not cell.has_interior:
        return
    if not rivals:
        yield cell
        return
    rival, rest = rivals[0], rivals[1:]
    if not rival.beats(form, cell):
        yield from _won(cell, form, rest)
        return
    for need in rival.needs:  # where the rival cannot run
        yield from _won(cell.cut([-x for x in need]), form, rest)
    for own in rival.forms:  # where one of its monomials is at least as large
        yield from _won(cell.cut(minus(own, form)), form, rest)


def _widened(part: Cone, within: Cone, form: Vector, own: Rival, rivals: Mapping[str, Rival]) -> Cone:
    """*part* with every condition left out that does not decide who wins."""
    kept = [f for f in part.facets if not within.implies(f)]
    for facet in tuple(kept):
        wider = within.cut_all(f for f in kept if f != facet)
        if own.reaches(form, wider) and not any(r.beats(form, wider) for r in rivals.values()):
            kept.remove(facet)
    return within.cut_all(kept)


def _inside(part: Cone, known: Regime) -> bool:
    return all(map(part.implies, known.region.normals))


def _covers(big: Regime, small: Regime) -> bool:
    return big.monomial == small.monomial and _inside(small.region, big)

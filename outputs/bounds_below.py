"""Lower bounds on what any schedule must move, and how far each schedule's class is from the largest of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.growth.cited import cited_bounds
from derive.growth.cone import Cone
from derive.growth.linear import minus
from derive.growth.lower import Bound, compulsory_bounds, contraction_bounds
from derive.growth.parameters import exponents_of
from derive.growth.posynomial import Facts
from derive.growth.regimes import Rival, winners

if TYPE_CHECKING:
    from derive.growth import Lead
    from derive.rewrite import Derivation
    from outputs.bounds import Bounds


@dataclass(frozen=True)
class Gap:
    """How far one monomial of a schedule's class is from a lower bound.

    Attributes:
        lead: the monomial.
        region: where it leads and the bound is the largest.
        bound: the lower bound.
        ratio: the monomial over the bound: 1 where they grow alike.
        below: whether the class is smaller than the bound there, so that what it was granted cannot be had.
    """

    lead: Lead
    region: Cone
    bound: Bound
    ratio: sp.Expr
    below: bool = False

    @property
    def tight(self) -> bool:
        """Whether no schedule grows slower."""
        return bool(self.ratio == 1)


@dataclass(frozen=True)
class Below:
    """Lower bounds on the schedules of a question.

    Attributes:
        of: the question and the schedules' classes.
    """

    of: Bounds

    @cached_property
    def lower(self) -> tuple[Bound, ...]:
        """Lower bounds that hold for every schedule here: derived ones, then cited ones.

        Schedules of a backward pass read different tensors that the forward pass saved; what is not common to all is left
        out, and of a common bound the least constant is kept.
        """
        first, *rest = self.by_schedule.values()
        found = []
        for bound in first:
            alike = [next((o for o in other if _same_bound(o, bound)), None) for other in rest]
            known = [o for o in alike if o is not None]
            if len(known) == len(rest):
                found.append(min((bound, *known), key=lambda o: 0 if o.constant is None else o.constant))
        return tuple(found)

    @cached_property
    def by_schedule(self) -> dict[str, tuple[Bound, ...]]:
        """Lower bounds on every program for the graph that a schedule runs."""
        return {name: tuple(_strongest(self._known(made.derivation))) for name, made in self.of.accounts.items()}

    def _known(self, derivation: Derivation) -> Iterator[Bound]:
        of = (self.of.parameters, self.of.within, self.of.alike)
        facts = Facts.of(self.of.symbols, self.of.where, frozenset())
        yield from compulsory_bounds(derivation.schedule, *of, facts)
        yield from contraction_bounds(derivation.schedule, *of, facts, fused=True)
        yield from cited_bounds(derivation.start, *of)

    @cached_property
    def _largest(self) -> dict[tuple[Bound, ...], tuple[tuple[Cone, Bound], ...]]:
        """The largest of several lower bounds, by region."""
        found = {}
        for bounds in dict.fromkeys(self.by_schedule.values()):
            by_name = {str(n): bound for n, bound in enumerate(bounds)}
            rivals = {
                key: Rival((tuple(-x for x in self.of.parameters.form(exponents_of(b.monomial))),), b.region.normals)
                for key, b in by_name.items()
            }
            won = winners(rivals, self.of.within, self.of.parameters)
            found[bounds] = tuple((r.region, by_name[r.schedules[0]]) for r in won)
        return found

    def gaps(self, name: str) -> tuple[Gap, ...]:
        """How far each monomial of a schedule's class is from the largest lower bound on every schedule, by region."""
        found = []
        for lead in self.of.classes[name].leads:
            form = self.of.parameters.form(exponents_of(lead.monomial))
            for region, bound in self._largest[self.by_schedule[name]]:
                shared = lead.region.cut_all(region.normals)
                if shared.has_interior:
                    other = self.of.parameters.form(exponents_of(bound.monomial))
                    above = minus(form, other)
                    below = any(above) and shared.implies(-x for x in above)
                    found.append(Gap(lead, shared, bound, self.of.parameters.monomial(above), below))
        return tuple(g for n, g in enumerate(found) if not any(_says_more(o, g) for o in found[:n] + found[n + 1 :]))


def _says_more(wide: Gap, narrow: Gap) -> bool:
    """Whether *wide* says the same of a larger region."""
    same = (wide.lead, wide.bound.monomial, wide.ratio) == (narrow.lead, narrow.bound.monomial, narrow.ratio)
    inside = all(map(narrow.region.implies, wide.region.normals))
    return same and inside and not all(map(wide.region.implies, narrow.region.normals))


def _same_bound(one: Bound, other: Bound) -> bool:
    same = (one.monomial, one.status, one.source) == (other.monomial, other.status, other.source)
    return same and set(one.region.facets) == set(other.region.facets)


def _strongest(bounds: Iterable[Bound]) -> list[Bound]:
    """Each monomial and region once; of derived bounds on one monomial the one with the larger region, or constant."""
    kept: list[Bound] = []
    for bound in bounds:
        weaker = [
            o
            for o in kept
            if o.status == bound.status == "derived"
            and o.monomial == bound.monomial
            and all(map(bound.region.implies, o.region.normals))
            and (o.constant is None or bound.constant is None or o.constant >= bound.constant)
        ]
        if not weaker:
            kept.append(bound)
    return kept

"""Everything ``derive bound`` answers: classes, the best by regime, lower bounds, gaps, and what numbers make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import DomainError, PreconditionError
from derive.flops import is_contraction
from derive.growth import Growth, Regime, growth, regimes
from derive.growth.classes import problems
from derive.growth.cone import Cone
from derive.growth.levels import Nested, nested
from derive.growth.linear import minus
from derive.growth.optimum import Best, Problem, best
from derive.growth.parameters import Condition, Parameters, exponents_of
from derive.growth.program import region_of
from derive.growth.tile_bounds import narrowest, regime_of
from derive.growth.workspace import workspace
from derive.substitution import free
from derive.symbols import M_L2, MEANINGS, M, M_reg
from outputs.bounds_at_numbers import AtNumbers
from outputs.bounds_below import Below
from outputs.crossing import Equality, equal_where
from outputs.deduction import Options, account
from outputs.explanation import Explanation
from rules.derivations import names, plan

if TYPE_CHECKING:
    from derive.schedule import Kernel
    from hardware.machine import Machine
    from outputs.account import Account
    from outputs.request import Request


@dataclass(frozen=True)
class Bounds:
    """The answer to ``derive bound``.

    Attributes:
        request: what was asked.
        asked: schedules named, or none for every one that applies.
        machine: the machine, if one was named.
        options: how to read the question.
        assumed: the regime that was asked about.
    """

    request: Request
    asked: tuple[str, ...] = ()
    machine: Machine | None = None
    options: Options = field(default_factory=Options)
    assumed: tuple[Condition, ...] = ()

    @cached_property
    def alike(self) -> Mapping[sp.Symbol, sp.Expr]:
        """Lengths that are one, as N."""
        return Explanation(self.request, ()).alike

    @cached_property
    def where(self) -> tuple[Condition, ...]:
        """The regime assumed: what was asked, and that a size which divides another, or is a part of it, is at most that."""
        given = {
            s
            for s in self.request.variant.symbols
            if s.name in self.request.numbers or s.name in self.request.open or s not in self.request.variant.defaults
        }
        divides = [(a, b) for a, b in self.request.variant.divides if {a, b} <= given]
        divides += self._parts
        known = {
            s for a in self.accounts.values() for t in a.derivation.start.tensors.values() for s in t.size.free_symbols
        }
        known |= {parts for parts, _ in self._parts}
        limits = [(a, b) for a, b in self.request.variant.at_most if a in known and b.free_symbols <= known]
        apart = (*((a, b) for a, b in divides if {a, b} <= known), *limits)
        own, apart = (tuple((a, b.xreplace(dict(self.alike))) for a, b in pairs) for pairs in (self.assumed, apart))
        return tuple(dict.fromkeys((*((a.xreplace(dict(self.alike)), b) for a, b in own), *apart, *self._mask_fits())))

    @property
    def _parts(self) -> list[Condition]:
        """(divisor, dividend) of the schedules' own sizes: splits and keys."""
        return list(dict.fromkeys(pair for name in self.accounts for pair in plan(name).divides))

    def _mask_fits(self) -> list[Condition]:
        """What the mask's sizes are taken to be, unless a regime was stated about them."""
        stated = {s for condition in self.assumed for side in condition for s in side.free_symbols}
        found = regime_of(narrowest(next(iter(self.accounts.values())).derivation.start.masks), self.alike)
        return [(size, keys) for size, keys in found if not size.free_symbols & stated]

    @cached_property
    def accounts(self) -> dict[str, Account]:
        """The schedules that apply, each with its tiles at the given numbers.

        One whose class has a size more, such as the splits of split-kv, is compared only when it is named.

        Raises:
            PreconditionError: a schedule that was named does not apply, or none does.
        """
        found: dict[str, Account] = {}
        refused: PreconditionError | None = None
        for name in self.asked or (name for name in names() if not plan(name).divides):
            try:
                made = account(self.request, name, None, self.options)
            except PreconditionError as error:
                if self.asked:
                    raise
                refused = error
                continue
            if self.asked or all(made.derivation.schedule != a.derivation.schedule for a in found.values()):
                found[name] = made
        if not found and refused is not None:
            raise refused
        return found

    @cached_property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """Sizes of the tensors: what every class may speak of."""
        sizes = {
            s
            for a in self.accounts.values()
            for t in a.derivation.start.tensors.values()
            for s in t.size.xreplace(dict(self.alike)).free_symbols
        }
        masks = [a.mask_of.pairs.xreplace(dict(self.alike)) for a in self.accounts.values() if a.mask_of is not None]
        sizes |= {s for pairs in masks for s in free(pairs) if s.name in MEANINGS or s in self.alike.values()}
        return tuple(sorted({*sizes, *(parts for parts, _ in self._parts), M}, key=str))

    @cached_property
    def classes(self) -> dict[str, Growth]:
        """The class of each schedule for which any tiles fit in the regime; ``refused`` says why the others have none.

        Raises:
            DomainError: no schedule has one.
        """
        if not self._classes[0]:
            raise DomainError(next(iter(self.refused.values())))
        return self._classes[0]

    @property
    def refused(self) -> dict[str, str]:
        """Why a schedule has no class here."""
        return self._classes[1]

    @cached_property
    def _classes(self) -> tuple[dict[str, Growth], dict[str, str]]:
        found, refused = {}, {}
        region_of(self.parameters, self.where)
        for name, made in self.accounts.items():
            try:
                tiles = plan(name).tiles
                found[name] = growth(made.derivation.schedule, self.alike, self.where, self.symbols, tiles)
            except DomainError as error:
                refused[name] = str(error)
        return found, refused

    @property
    def parameters(self) -> Parameters:
        """What all classes speak of."""
        return Parameters(self.symbols)

    @cached_property
    def within(self) -> Cone:
        """The regime assumed, as a region."""
        return region_of(self.parameters, self.where)

    def beyond(self, region: Cone) -> tuple[Condition, ...]:
        """What bounds *region* besides the regime assumed."""
        return self.parameters.conditions(region, self.within)

    def granted(self, name: str) -> tuple[Kernel, ...]:
        """Kernels of a schedule that are granted one read of each operand of a matrix product, whatever M is."""
        schedule = self.accounts[name].derivation.schedule
        return tuple(k for k in schedule.kernels if not k.loops and any(map(is_contraction, schedule.nodes(k))))

    @cached_property
    def best(self) -> tuple[Regime, ...]:
        """The smallest class by regime, over schedules that keep all they hold within M."""
        own = {name: found for name, found in self.classes.items() if not self.granted(name)}
        return regimes(own or self.classes, self.within, self.parameters)

    def reached(self, name: str) -> dict[str, tuple[tuple[Condition, ...], ...]]:
        """For a schedule that is granted its operands: which others reach its class with tiles, and in which regions."""
        granted = self.classes[name].monomials
        forms = {m: self.parameters.form(exponents_of(m)) for m in granted}
        found: dict[str, tuple[tuple[Condition, ...], ...]] = {}
        for other, rival in self.classes.items():
            above = [self.parameters.form(exponents_of(m)) for m in rival.monomials if m not in granted]
            if self.granted(other) or not set(granted) <= set(rival.monomials):
                continue
            regions = []
            for top in forms.values():
                below = (minus(top, form) for form in above)
                region = self.within.cut_all(rival.region.normals).cut_all(below)
                if region.has_interior:
                    regions.append(self.beyond(region))
            if regions:
                found[other] = tuple(dict.fromkeys(regions))
        return found

    @cached_property
    def below(self) -> Below:
        """Lower bounds, and how far each schedule is from them."""
        return Below(self)

    @cached_property
    def problems(self) -> dict[str, dict[Kernel, Problem]]:
        """What each kernel of a schedule minimises by its tiles."""
        schedules = {name: self.accounts[name].derivation.schedule for name in self.classes}
        return {name: problems(schedule, self.alike, self.where) for name, schedule in schedules.items()}

    @cached_property
    def optima(self) -> dict[str, dict[Kernel, Best]]:
        """The best real tiles of each kernel in closed form, where there is one."""
        solved = {name: {k: best(problem) for k, problem in asked.items()} for name, asked in self.problems.items()}
        return {name: {k: b for k, b in found.items() if b is not None} for name, found in solved.items()}

    @cached_property
    def levels(self) -> dict[str, Nested]:
        """The schedules with one tiled kernel at every boundary: registers, shared memory, L2."""
        found = {}
        for name, own in self.classes.items():
            schedule = self.accounts[name].derivation.schedule
            made = nested(schedule, (M_reg, M, M_L2), self.alike, self.where, own)
            if made is not None:
                found[name] = made
        return found

    @cached_property
    def equalities(self) -> dict[tuple[str, str], Equality]:
        """Where a schedule that chooses tiles and one that is granted its operands move alike, in their leading terms."""
        found = {}
        for tiled in (n for n in self.classes if not self.granted(n)):
            for granted in (n for n in self.classes if self.granted(n)):
                equality = equal_where(self.accounts[tiled], self.accounts[granted], self.alike)
                if equality is not None:
                    found[tiled, granted] = equality
        return found

    @cached_property
    def at_numbers(self) -> AtNumbers:
        """What the given numbers make of it."""
        return AtNumbers(self)

    def workspace(self, name: str) -> tuple[sp.Expr, ...]:
        """The class of the memory that a schedule needs beside its inputs and outputs; empty when it needs none."""
        return workspace(self.accounts[name].derivation.schedule, self.parameters, self.within, self.alike)

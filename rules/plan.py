"""A named derivation: which rules, in which order, and the tiles it is usually run with. Nothing in it is a formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import sympy as sp

from derive.errors import PreconditionError
from derive.graph import Graph
from derive.rewrite import Derivation, Rule, WherePossible, deduce
from derive.schedule import Schedule
from derive.symbols import n_L2
from rules.schedule.interchange import QUERIES_OUTSIDE_HEADS
from rules.schedule.keep_resident import FORWARD, keep_resident
from rules.schedule.launch import QUERIES

AlgebraRules = tuple[Rule[Graph] | WherePossible[Graph], ...]
ScheduleRules = tuple[Rule[Schedule] | WherePossible[Schedule], ...]


@dataclass(frozen=True)
class Plan:
    """What a file in ``rules/derivations`` holds.

    Attributes:
        name: what a person types.
        says: one sentence on what it is.
        reference: where it was published.
        algebra: rules on the graph.
        schedule: rules on the schedule; the last is the cache's.
        tiles: tile sizes used for numbers when none are given, perhaps in other symbols.
        divides: (divisor, dividend) pairs of symbols that must divide, such as the splits and the keys.
        direction: ``forward`` or ``backward``: whether it schedules a first pass or one that another ran before.
        after: of a backward pass, the schedule that the forward pass before it is run with.
    """

    name: str
    says: str
    reference: str
    algebra: AlgebraRules
    schedule: ScheduleRules
    tiles: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    divides: tuple[tuple[sp.Symbol, sp.Symbol], ...] = ()
    direction: str = "forward"
    after: str = ""

    def derive(self, graph: Graph) -> Derivation:
        """The derivation of *graph*.

        Raises:
            PreconditionError: a rule does not apply, or the graph is a backward pass and the plan a forward one.
        """
        asked = "backward" if graph.given else "forward"
        if asked != self.direction:
            raise PreconditionError(
                f"{self.name} schedules a {self.direction} pass and this is a {asked} one; `derive schedules` lists both"
            )
        return deduce(self.name, graph, self.algebra, self.schedule)

    def ordered(self, *, order: str = "head", sawtooth: bool = False, private_caches: bool = False) -> Plan:
        """The plan with another grid order, sweep or cache.

        Args:
            order: ``head`` keeps heads outermost in the grid, ``query`` puts query tiles outermost, if they are on it; keys
                stay outermost in a backward pass.
            sawtooth: whether odd waves sweep the keys backwards.
            private_caches: whether there are n_L2 caches, each with a copy of what its CTAs read.
        """
        caches = n_L2 if private_caches else sp.Integer(1)
        changed = sawtooth or private_caches
        rules: list[Rule[Schedule] | WherePossible[Schedule]] = []
        for rule in self.schedule:
            last = isinstance(rule, WherePossible) and rule.rule is FORWARD
            if last and order == "query" and QUERIES in self.schedule and self.direction == "forward":
                rules.append(WherePossible(QUERIES_OUTSIDE_HEADS))
            rules.append(WherePossible(keep_resident(sawtooth=sawtooth, caches=caches)) if last and changed else rule)
        return replace(self, schedule=tuple(rules))

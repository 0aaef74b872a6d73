"""Each closed form beside its witness, at one configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from derive.evaluate import evaluate, kept_pairs, random_inputs
from derive.exact import Number, holds, value
from derive.execute import execute
from derive.flops import Pipe, executed, flops, is_contraction, operations
from derive.footprint import Place, kernel_footprint
from derive.lru import replay_cache
from derive.replay import Walk, walk
from derive.residency import dram
from derive.sharing import Sharing, sharings
from derive.traffic import compulsory, traffic

if TYPE_CHECKING:
    from derive.cost import Cost, Move
    from derive.masks import Pattern
    from derive.rewrite import Derivation
    from derive.schedule import Schedule

TOLERANCE = 1e-9
"""Relative error allowed between two float64 evaluations of one graph: sums of at most 256 terms in another order."""


@dataclass(frozen=True)
class Configuration:
    """One point at which formulas and witnesses are compared.

    Attributes:
        numbers: value by symbol name.
        widths: bytes an element by width symbol.
        mask, order, sawtooth, caches: how the schedule is made.
        capacity: bytes of one cache.
    """

    numbers: Mapping[str, int]
    widths: Mapping[str, Fraction]
    mask: Pattern
    order: str
    sawtooth: bool
    caches: int
    capacity: int

    @property
    def values(self) -> dict[str, Number]:
        """All of it by symbol name."""
        return {**self.numbers, **self.widths, "C_L2": self.capacity, "n_L2": self.caches}

    @property
    def words(self) -> str:
        """As one would type it."""
        sizes = " ".join(f"{name}={number}" for name, number in self.numbers.items())
        sweep = "sawtooth" if self.sawtooth else "forward"
        return f"{sizes} C_L2={self.capacity} n_L2={self.caches} mask={self.mask} --order {self.order} --sweep {sweep}"


@dataclass(frozen=True)
class Finding:
    """A closed form and its witness that disagree.

    Attributes:
        schedule: name of the schedule.
        comparison: what was compared.
        formula, witness: the two values.
        configuration: where, as one would type it.
    """

    schedule: str
    comparison: str
    formula: str
    witness: str
    configuration: str

    @property
    def lines(self) -> list[str]:
        """For a terminal."""
        return [
            f"{self.schedule}: {self.comparison}",
            f"  closed form {self.formula}",
            f"  witness     {self.witness}",
            f"  at {self.configuration}",
        ]


class Mismatch(Exception):  # noqa: N818  (a finding, not a fault of the program)
    """Raised with a ``Finding``, so that the search for the smallest one sees it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(" ".join(finding.lines))
        self.finding = finding


@dataclass(frozen=True)
class ClosedForms:
    """The closed forms of one derivation, each built once."""

    derivation: Derivation

    @cached_property
    def schedule(self) -> Schedule:
        """Its schedule."""
        return self.derivation.schedule

    @cached_property
    def traffic(self) -> Mapping[str, Move]:
        """SM-side elements by tensor."""
        return traffic(self.schedule).by_tensor

    @cached_property
    def dram(self) -> Mapping[str, Move]:
        """HBM elements by tensor."""
        return dram(self.schedule).by_tensor

    @cached_property
    def compulsory(self) -> Mapping[str, Move]:
        """Elements that any schedule must move."""
        return compulsory(self.schedule.graph).by_tensor

    @cached_property
    def executed(self) -> Mapping[Pipe, Cost]:
        """Work that is run."""
        return executed(self.schedule)

    @cached_property
    def matmul(self) -> Cost:
        """Useful matrix FLOP, exact."""
        return flops(self.schedule.graph)[Pipe.MMA]

    @cached_property
    def footprints(self) -> Mapping[str, Cost]:
        """Elements that a CTA holds of its inputs, by kernel."""
        return {k.name: kernel_footprint(self.schedule, k, Place.SHARED) for k in self.schedule.kernels}

    @cached_property
    def sharings(self) -> list[tuple[Sharing, sp.Basic]]:
        """How CTAs share a kernel's inputs, and where the count of it is exact."""
        masked = self.schedule.graph.mask is not None
        found = (s for kernel in self.schedule.kernels for s in sharings(self.schedule, kernel))
        return [(s, s.is_exact(masked=masked)) for s in found]


@dataclass(frozen=True)
class Trial:
    """Closed forms at one configuration, and what the witnesses saw there."""

    forms: ClosedForms
    at: Configuration

    @property
    def schedule(self) -> Schedule:
        """The schedule that is tried."""
        return self.forms.schedule

    @cached_property
    def values(self) -> dict[str, Number]:
        """The configuration by symbol name."""
        return self.at.values

    @cached_property
    def walked(self) -> Walk:
        """What the tile walker counted."""
        return walk(self.schedule, self.values)

    def number(self, amount: sp.Basic) -> Number:
        """The value of a closed form here."""
        return value(amount, self.values)

    def disagrees(self, what: str, formula: object, witness: object) -> Mismatch:
        """The finding that they do not agree."""
        name = self.forms.derivation.name
        return Mismatch(Finding(name, what, str(formula), str(witness), self.at.words))


def _traffic(trial: Trial) -> int:
    """Elements read and written of every tensor, against the tile walker."""
    walked, counted = trial.walked.moves, trial.forms.traffic
    names = dict.fromkeys((*walked, *counted))
    for name in names:
        move = counted.get(name)
        formula = (trial.number(move.read), trial.number(move.write)) if move else (0, 0)
        if formula != walked.get(name, (0, 0)):
            raise trial.disagrees(f"traffic of {name} (read, written)", formula, walked.get(name))
    return len(names)


def _work(trial: Trial) -> int:
    """Operations run, by pipe, against the points that the walker runs."""
    walked = dict.fromkeys(Pipe, 0)
    for name, points in trial.walked.points.items():
        if _added_in_the_accumulator(trial.schedule, name):
            continue
        for pipe, each in operations(trial.schedule.graph.producers[name]).items():
            walked[pipe] += each * points
    for pipe, cost in trial.forms.executed.items():
        formula = trial.number(cost.amount)
        if formula != walked[pipe]:
            raise trial.disagrees(f"executed work on {pipe.value}", formula, walked[pipe])
    return len(walked)


def _added_in_the_accumulator(schedule: Schedule, name: str) -> bool:
    """Whether *name* is the sum of two matrix products of its own kernel that it alone reads."""
    e, kernel = schedule.graph.producers[name], schedule.kernel_of[name]
    if e.map.value != "add" or e.reduced:
        return False
    makers = [schedule.graph.producers.get(t.name) for t in e.inputs]
    alone = [m is not None and schedule.graph.readers[m.output.name] == (e,) for m in makers]
    here = [m is not None and m.output.name in kernel.einsums and is_contraction(m) for m in makers]
    return all(alone) and all(here)


def _useful_work(trial: Trial) -> int:
    """Exact FLOPs against pairs counted one by one."""
    graph = trial.schedule.graph
    extents = {name: trial.number(index.extent) for name, index in graph.indices.items()}
    pairs = {mask: int(kept_pairs(mask, trial.values).sum()) for mask in graph.masks}
    counted = 0
    for e in filter(is_contraction, graph.einsums):
        masked = () if e.domain is None else e.domain.axes
        others = prod(int(extents[i.name]) for i in e.space if i.name not in masked)
        counted += 2 * (1 if e.domain is None else pairs[e.domain]) * others
    formula = trial.number(trial.forms.matmul.amount)
    if formula != counted:
        raise trial.disagrees("exact matmul FLOP", formula, counted)
    return 1


def _footprint(trial: Trial) -> int:
    """What a CTA holds of its inputs, against the most that the walker held."""
    for name, room in trial.forms.footprints.items():
        if trial.walked.live[name] > trial.number(room.amount):
            raise trial.disagrees(f"shared memory of {name}", trial.number(room.amount), trial.walked.live[name])
    return len(trial.forms.footprints)


def _order(trial: Trial) -> int:
    """Compulsory <= SM-side, and HBM between nothing and SM-side, tensor by tensor."""
    seen = trial.forms.traffic
    bounds = [
        (f"compulsory {name}", m.read + m.write, seen[name].read + seen[name].write)
        for name, m in trial.forms.compulsory.items()
    ]
    for name, move in trial.forms.dram.items():
        bounds += [
            (f"HBM reads of {name}", move.read, seen[name].read),
            (f"HBM writes of {name}", move.write, seen[name].write),
        ]
    for what, below, above in bounds:
        small, large = trial.number(below), trial.number(above)
        if not 0 <= small <= large:
            raise trial.disagrees(f"{what} lie between 0 and the SM-side count", small, large)
    return len(bounds)


def _residency(trial: Trial) -> int:
    """HBM bytes of what CTAs share, against the LRU cache: equal where the count is exact, else at most what is counted."""
    if not trial.forms.sharings:
        return 0
    at = trial.at
    widths = {name: Fraction(trial.number(t.width)) for name, t in trial.schedule.graph.tensors.items()}
    replayed = replay_cache(
        trial.schedule, trial.values, running=at.numbers["C"], capacity=at.capacity, caches=at.caches, widths=widths
    )
    for shared, is_exact in trial.forms.sharings:
        names = [t.name for t in shared.tensors]
        formula = sum(trial.number(trial.forms.dram[name].read) * widths[name] for name in names)
        witness = sum(replayed[name][0] for name in names)
        alone = trial.number(shared.beside) == 0
        exact = alone and holds(is_exact, trial.values)
        # what an earlier kernel hands on is in the cache, but the replay does not find it: its lines are that kernel's tiles
        handed_on = any(name in trial.schedule.graph.producers for name in names)
        if (exact and formula != witness) or ((alone or not handed_on) and witness > formula):
            raise trial.disagrees(
                f"HBM reads of {' and '.join(names)} ({'exact' if exact else 'at most'})", formula, witness
            )
    return len(trial.forms.sharings)


def _values(trial: Trial) -> int:
    """The schedule, run tile by tile, against the variant's graph, evaluated at once: every output."""
    graph, numbers = trial.forms.derivation.start, trial.at.numbers
    values = {**trial.values, "B": 1}  # every sequence of a batch is the same problem
    inputs = random_inputs(graph, values, np.random.default_rng(sum(numbers.values())))
    read = (t.name for e in (*graph.given, *graph.einsums) for t in e.inputs if not t.indices)
    scalars = {name: 0.3 + 0.1 * n for n, name in enumerate(dict.fromkeys(read)) if name not in graph.producers}
    every, found = evaluate(graph, inputs, scalars, values), execute(trial.schedule, inputs, scalars, values)
    for name in graph.outputs:
        expected = every[name]
        error = float(np.max(np.abs(expected - found[name]), initial=0.0))
        if not error <= TOLERANCE * (1 + float(np.max(np.abs(expected), initial=0.0))):
            raise trial.disagrees(f"largest difference of {name} from the variant's graph", 0, error)
    return len(graph.outputs)


COMPARISONS: Mapping[str, Callable[[Trial], int]] = {
    "traffic (tile walker)": _traffic,
    "executed work (tile walker)": _work,
    "useful work (pairs counted)": _useful_work,
    "footprint (tile walker)": _footprint,
    "compulsory <= HBM <= SM-side": _order,
    "residency (LRU replay)": _residency,
    "values (interpreter)": _values,
}
"""Every comparison by name; each returns how many numbers it compared."""

"""Bytes that cross HBM: the wave model against an LRU cache, at capacities next to every threshold of the closed form."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

from derive.choice import at_most
from derive.errors import DomainError
from derive.exact import holds, value
from derive.lru import replay_cache
from derive.residency import dram
from derive.schedule import Schedule
from derive.sharing import sharings
from derive.symbols import C_L2
from tests.soak.batch import Counterexample, Found, Numbers, smallest
from tests.soak.compiled import Compiled
from tests.soak.drawing import Program, catalogue, drawn, fitted, least, sizes

KIND = "catalogue: HBM, LRU cache"
WIDTH = 2
"""Bytes of every element: the capacities next to a threshold are then apart by less than any line."""
_STRIDE = 2003
_LONGEST = 18
"""The largest length: the cache is replayed line by line."""


@dataclass(frozen=True)
class Group:
    """Tensors that share slices of one cache: their reads, and whether the count is exact or an upper bound.

    What an earlier kernel hands on is in the cache, but the replay does not find it, since its lines are that kernel's tiles:
    beside what CTAs keep for themselves nothing is said of it.
    """

    names: tuple[str, ...]
    exact: str
    beside: str
    handed_on: bool


class Forms:
    """What crosses HBM of one schedule: closed forms, the thresholds in them, and an LRU cache.

    Raises:
        DomainError: the engine has no closed form for it.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        moves = dram(schedule).by_tensor
        found = [s for kernel in schedule.kernels for s in sharings(schedule, kernel)]
        masked = schedule.graph.mask is not None
        self.groups = [
            Group(
                tuple(t.name for t in s.tensors),
                f"exact {n}",
                f"beside {n}",
                any(t.name in schedule.graph.producers for t in s.tensors),
            )
            for n, s in enumerate(found)
        ]
        amounts = {f"read {name}": moves[name].read for group in self.groups for name in group.names}
        conditions = {a for amount in amounts.values() for a in amount.atoms(type(at_most(C_L2, C_L2 + 1)))}
        amounts |= {f"exact {n}": s.is_exact(masked=masked) for n, s in enumerate(found)}
        amounts |= {f"beside {n}": s.beside for n, s in enumerate(found)}
        self.amounts, self.compiled = amounts, Compiled(amounts)
        bounds = {c.lhs for c in conditions if c.rhs == C_L2}
        bounds |= {s.step_bytes for s in found} | {s.slice_bytes for s in found}
        self.thresholds = Compiled({f"threshold {n}": bound for n, bound in enumerate(sorted(bounds, key=str))})
        self.lines = Compiled({f"line {n}": s.step_bytes for n, s in enumerate(found)})

    def capacities(self, numbers: Numbers, random: Random) -> list[int]:
        """Capacities at which something begins to fit, a byte and a line below and above, and one anywhere."""
        at = self._at(numbers)
        at_thresholds = {int(n) for n in self.thresholds(at).values()}
        steps = {1, *(int(n) for n in self.lines(at).values())}
        near = {t + sign * step for t in at_thresholds for step in steps for sign in (-1, 0, 1)}
        return sorted({max(1, n) for n in near} | {random.randint(1, 2 * max(at_thresholds, default=8) + 8)})

    def disagreement(self, numbers: Numbers) -> tuple[str, str] | None:
        """What the model and the cache say of the first tensors on which they differ; ``None`` when they agree."""
        at = self._at(numbers)
        widths = dict.fromkeys(self.schedule.graph.tensors, Fraction(WIDTH))
        replayed = replay_cache(
            self.schedule, at, running=numbers["C"], capacity=numbers["C_L2"], caches=numbers["n_L2"], widths=widths
        )
        counted = self.compiled(at)
        for group in self.groups:
            formula = sum(WIDTH * counted[f"read {name}"] for name in group.names)
            witness = sum(replayed[name][0] for name in group.names)
            alone = counted[group.beside] == 0
            exact = alone and bool(counted[group.exact])
            if (alone or not group.handed_on) and (witness > formula or (exact and witness != formula)):
                what = " and ".join(group.names)
                return f"{'exactly' if exact else 'at most'} {formula} B read of {what}", f"{witness} B"
        return None

    def same_as_evaluated(self, numbers: Numbers) -> bool:
        """Whether the compiled forms and the engine's own evaluation agree."""
        at, counted = self._at(numbers), self.compiled(self._at(numbers))
        truths = {g.exact for g in self.groups}
        return all(
            counted[name] == (holds(amount, at) if name in truths else value(amount, at))
            for name, amount in self.amounts.items()
        )

    def _at(self, numbers: Numbers) -> Numbers:
        widths = {s.name for t in self.schedule.graph.tensors.values() for s in t.width.free_symbols}
        return {"C_L2": 1, "n_L2": 1, **dict.fromkeys(widths, WIDTH), **numbers}


def batch(seed: int, number: int, configurations: int) -> Found:
    """Try one program of the catalogue whose tensors share a cache, at *configurations* capacities or a few more."""
    random = Random(f"residency {seed} {number}")
    found = Found(KIND)
    programs = catalogue()
    program = drawn(programs[(number * _STRIDE + seed) % len(programs)], random)
    if program is None:
        return found
    schedule = program.derive().schedule
    try:
        forms = Forms(schedule)
    except DomainError:
        found.refused = 1
        return found
    if not forms.groups:
        return found
    found.programs = 1
    while found.tried < configurations:
        numbers = _short(program, sizes(program, schedule, random), random)
        for capacity in forms.capacities(numbers, random):
            at = {**numbers, "C_L2": capacity, "n_L2": 1}
            said = forms.disagreement(at)
            if said is None and found.tried == 0 and not forms.same_as_evaluated(at):
                said = ("as printed", "as evaluated")
            found.tried += 1
            if said is not None:
                found.mismatches += 1
                found.smallest = found.smallest or _shrunk(program, forms, at, said)
    return found


def _short(program: Program, numbers: Numbers, random: Random) -> Numbers:
    """*numbers* with lengths of no more than a few tiles."""
    if program.pattern.length is not None:
        return numbers
    lengths = {
        name: min(numbers[name], random.randint(1, _LONGEST)) for name in ("N_q", "N_k", "N_p") if name in numbers
    }
    return fitted(program, {**numbers, **lengths})


def _shrunk(program: Program, forms: Forms, numbers: Numbers, said: tuple[str, str]) -> Counterexample:
    def fails(at: Numbers) -> bool:
        return fitted(program, at) == at and forms.disagreement(at) is not None

    at = smallest(numbers, fails, {**least(program), "n_L2": 1}) if fails(numbers) else numbers
    what = f"{program}, --order {program.order} --sweep {'sawtooth' if program.sawtooth else 'forward'}"
    return Counterexample(what, *(forms.disagreement(at) or said), at, "")

"""Programs of the catalogue and their sizes, drawn from a seed: small, ragged, and often next to where something changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import lcm
from random import Random

from derive.attention import variant
from derive.errors import BadValueError, PreconditionError
from derive.exact import value
from derive.masks import Pattern, patterns
from derive.rewrite import Derivation
from derive.schedule import Schedule
from derive.symbols import MAY_BE_ZERO, MEANINGS
from derive.variant import Variant
from rules.derivations import plan
from tests.soak.batch import Numbers
from tests.strategies import PAIRS

LARGEST = {"N_q": 32, "N_k": 32, "N_p": 16, "B_r": 12, "B_c": 12, "B_d": 6, "C": 9, "h_k": 3, "B": 2}
"""The largest value that is drawn of a size; of a mask's, 16, and of any other, 4."""
_OF_SCHEDULES = {"B_r", "B_c", "B_d", "C", "C_L2", "n_s", "C_t"}
_TILES = {"B_r": "N_q", "B_c": "N_k", "B_d": "d_v"}


@dataclass(frozen=True)
class Program:
    """A variant under a mask with a schedule.

    Attributes:
        variant, schedule: their names.
        pattern: the mask.
        order: of the grid.
        sawtooth: whether every other wave sweeps backwards.
    """

    variant: str
    schedule: str
    pattern: Pattern
    order: str = "head"
    sawtooth: bool = False

    def derive(self) -> Derivation:
        """Its derivation; raises ``PreconditionError`` where a rule does not apply."""
        chosen = plan(self.schedule).ordered(order=self.order, sawtooth=self.sawtooth)
        return chosen.derive(variant(self.variant).graph(self.pattern))

    def __str__(self) -> str:
        """As one would type it."""
        masked = variant(self.variant).own_mask is None and self.pattern.name != "full"
        return f"{self.variant} --schedule {self.schedule}" + f" mask={self.pattern}" * masked

    def at(self, numbers: Numbers) -> str:
        """The same with sizes, those that the list of documents gives left out."""
        listed = ("N_q", "N_k") if self.pattern.length is not None else ()
        has = {s.name for s in variant(self.variant).symbols} | set(self.pattern.sizes) | _OF_SCHEDULES
        given = ((MEANINGS[name].key, n) for name, n in numbers.items() if name in has and name not in listed)
        return " ".join((str(self), *(f"{key}={number}" for key, number in given if key)))


@cache
def catalogue() -> tuple[Program, ...]:
    """Every schedule that fits every variant, under every mask that the variant takes; lists of documents are drawn later."""
    masks = patterns(((1,),))
    return tuple(
        Program(name, schedule, pattern)
        for (name, schedule), pattern in product(PAIRS, masks)
        if _takes(variant(name), pattern)
    )


def _takes(found: Variant, pattern: Pattern) -> bool:
    """Whether a variant can be asked about under a mask."""
    if pattern.length is not None and not (found.one_sequence and found.extents["q"].free_symbols):
        return False
    try:
        found.graph(pattern)
    except BadValueError:
        return False
    return True


def drawn(program: Program, random: Random) -> Program | None:
    """*program* with a grid order, a sweep and lengths of documents; ``None`` where its mask has no such schedule."""
    pattern = program.pattern
    if pattern.length is not None:
        lengths = tuple(random.randint(1, 11) for _ in range(random.randint(1, 4)))
        pattern = Pattern(pattern.name, pattern.given, lengths)
    order, sawtooth = random.choice(("head", "query")), random.random() < 0.5
    for chosen in (order, "head"):
        found = Program(program.variant, program.schedule, pattern, chosen, sawtooth)
        try:
            found.derive()
        except PreconditionError:
            continue
        return found
    return None


def sizes(program: Program, schedule: Schedule, random: Random) -> Numbers:
    """A value for every symbol of *schedule*: mostly ragged, now and then a tile as long as what it cuts, or one off."""
    found = variant(program.variant)
    names = {s.name for i in schedule.graph.indices.values() for s in i.extent.free_symbols} | {
        "N_q",
        "N_k",
        "d",
        "d_v",
    }
    names |= {s.name for kernel in schedule.kernels for loop in kernel.loops for s in loop.tile.free_symbols}
    names |= {s.name for s in found.symbols} | set(program.pattern.sizes) | {"C"}
    numbers = {name: _size(name, program, random) for name in MEANINGS if name in names}
    if not found.extents["q"].free_symbols:
        numbers["N_q"] = int(value(found.extents["q"], {}))
    if program.pattern.length is not None:
        numbers |= dict.fromkeys(("N_q", "N_k"), program.pattern.length)
    for tile, length in _TILES.items():
        if tile in numbers and random.random() < 0.25:
            numbers[tile] = max(1, numbers.get(length, 1) + random.choice((-1, 0, 1)))
    return fitted(program, numbers)


def fitted(program: Program, numbers: Numbers) -> Numbers:
    """*numbers* with every size that others must divide the least multiple of them, and no part beyond its whole."""
    found, at = variant(program.variant), dict(numbers)
    pairs = [*found.divides, *plan(program.schedule).divides]
    for dividend in dict.fromkeys(b for _, b in pairs):  # as listed: what divides one that divides another comes first
        divisors = [at[a.name] for a, b in pairs if b == dividend and a.name in at]
        if program.pattern.length is not None and dividend.name in ("N_q", "N_k"):
            at |= {a.name: 1 for a, b in pairs if b == dividend and at[dividend.name] % at[a.name]}
        elif dividend.name in at:
            step = lcm(*divisors)
            at[dividend.name] = -(-at[dividend.name] // step) * step
    for part, whole in found.at_most:
        at[part.name] = min(at[part.name], int(value(whole, at)))
    return at


def least(program: Program) -> dict[str, int]:
    """The least value of each size; a list of documents fixes the lengths."""
    fixed = dict.fromkeys(("N_q", "N_k"), program.pattern.length or 1)
    return {**dict.fromkeys(MAY_BE_ZERO, 0), **fixed}


def _size(name: str, program: Program, random: Random) -> int:
    low = int(name not in MAY_BE_ZERO)
    high = LARGEST.get(name, 16 if name in program.pattern.sizes else 4)
    return random.choice((low, random.randint(low, high), random.randint(low, high), random.randint(low, high)))

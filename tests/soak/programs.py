"""Programs that no one wrote: random cascades of Einsums, cut into kernels, tiled, put on the grid and reordered by rules.

Matrix products, elementwise operations, sums and maxima over four indices; every loop is made by a rule whose clauses hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import sympy as sp

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import DomainError, IllFormedError
from derive.graph import Graph
from derive.rewrite import Rule
from derive.schedule import Kernel, Schedule
from derive.symbols import B_c, B_d, B_r, N_k, N_q, b, d, d_v
from rules.schedule.interchange import outside
from rules.schedule.launch import launch_loop
from rules.schedule.tile import tile
from tests.soak.batch import Counterexample, Found, Numbers, smallest
from tests.soak.traffic import Forms

KIND = "random programs: tile walk"
INDICES = (Index("q", N_q), Index("k", N_k), Index("d", d), Index("e", d_v))
TILES = (B_r, B_c, B_d, sp.Integer(1), sp.Integer(2), sp.Integer(3))
_ATTEMPTS = 50
_UNARY = (Map.EXP, Map.TANH, Map.COPY)
_BINARY = (Map.MUL, Map.ADD, Map.SUB, Map.DIV)


def graph(random: Random) -> Graph:
    """A cascade of two to six Einsums, each over tensors that are given or that stand before it; the unread are outputs."""
    given = [Tensor(name, _some(INDICES, random), b) for name in "ABCD"]
    made: list[Einsum] = []
    for number in range(random.randint(2, 6)):
        operator = random.choice((Map.MUL, Map.MUL, *_BINARY, *_UNARY))
        latest = [e.output for e in made[-2:]]
        inputs = tuple(random.choice((*given, *latest, *latest)) for _ in range(operator.arity))
        bound = tuple(dict.fromkeys(i for t in inputs for i in t.indices))
        kept = tuple(i for i in bound if random.random() < 0.65) or bound[:1]
        reduce = random.choice((Reduce.SUM, Reduce.SUM, Reduce.MAX)) if len(kept) < len(bound) else None
        if operator is Map.COPY and reduce is None:
            operator = Map.EXP
        made.append(Einsum(Tensor(f"X{number}", kept, b), inputs, operator, reduce))
    read = {t.name for e in made for t in e.inputs}
    outputs = tuple(e.output.name for e in made if e.output.name not in read or random.random() < 0.15)
    return Graph(tuple(made), outputs)


def _some(indices: tuple[Index, ...], random: Random) -> tuple[Index, ...]:
    """One to three of *indices*, in their order."""
    return tuple(sorted(random.sample(indices, random.randint(1, 3)), key=indices.index))


def schedule(cascade: Graph, random: Random) -> Schedule:
    """*cascade* in kernels cut at random, then tiled, launched and reordered by rules where they are legal."""
    names = [e.output.name for e in cascade.einsums]
    cuts = [0, *(n for n in range(1, len(names)) if random.random() < 0.35), len(names)]
    found = Schedule(cascade, tuple(Kernel(tuple(names[a:z])) for a, z in pairwise(cuts)))
    for rule in _rules(random):
        matches = list(rule.matches(found))
        if matches:
            found = rule.rewrite(found, random.choice(matches))
    return found


def _rules(random: Random) -> Iterator[Rule[Schedule]]:
    """Rules in a random order, tiling before what needs loops."""
    names = [i.name for i in INDICES]
    for _ in range(random.randint(1, 7)):
        yield tile(random.choice(names), random.choice(TILES))
    for _ in range(random.randint(0, 3)):
        yield launch_loop(random.choice(names))
    for _ in range(random.randint(0, 3)):
        inner, outer = random.sample(names, 2)
        yield outside(inner, outer, example=lambda: Schedule(Graph((), ()), ()))


def program(random: Random) -> Schedule:
    """A schedule of a random graph; draws that have no meaning are drawn again."""
    for _ in range(_ATTEMPTS):
        try:
            return schedule(graph(random), random)
        except IllFormedError:
            continue
    raise AssertionError(f"{_ATTEMPTS} draws in a row have no meaning")


def sizes(random: Random) -> Numbers:
    """A value for every symbol of every program."""
    numbers = {s.name: random.randint(1, 12) for s in (N_q, N_k, d, d_v)}
    return numbers | {s.name: random.choice((1, random.randint(1, 6), random.randint(1, 14))) for s in (B_r, B_c, B_d)}


def batch(seed: int, number: int, configurations: int) -> Found:
    """Try eight random programs, each at *configurations* sizes."""
    random = Random(f"programs {seed} {number}")
    found = Found(KIND)
    for _ in range(8):
        cut = program(random)
        try:
            forms = Forms(cut)
        except DomainError:
            found.refused += 1
            continue
        found.programs += 1
        for _ in range(configurations):
            numbers = sizes(random)
            found.tried += 1
            if not forms.agree(numbers):
                found.mismatches += 1
                found.smallest = found.smallest or _shrunk(cut, forms, numbers)
        found.visits += forms.visits
    return found


def _shrunk(cut: Schedule, forms: Forms, numbers: Numbers) -> Counterexample:
    at = smallest(numbers, lambda at: not forms.agree(at), {})
    return Counterexample(f"{cut}\n{cut.graph}", *forms.difference(at), at, "")

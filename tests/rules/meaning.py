"""What the rule tests compare: values of graphs and schedules at numbers, and what is lost when a clause is ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from derive.errors import DomainError, IllFormedError
from derive.evaluate import evaluate, whole
from derive.exact import holds, value
from derive.execute import execute
from derive.graph import Graph
from derive.lru import replay_cache
from derive.operators import Array
from derive.replay import walk
from derive.residency import dram
from derive.rewrite import Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.sharing import sharings
from derive.traffic import traffic

Subject = Graph | Schedule
Numbers = Mapping[str, int]

RAGGED = {"N_q": 5, "N_k": 7, "n_s": 7, "N_p": 8, "d": 2, "d_v": 3, "h": 4, "h_k": 2, "B": 2}
RAGGED |= {"B_r": 2, "B_c": 3, "B_d": 2, "C_k": 3, "C_t": 5}
"""Every index has several tiles, and the last one is ragged."""


def inputs_of(graph: Graph, numbers: Numbers, seed: int = 0) -> dict[str, Array]:
    """An array for each tensor that nothing makes, entries from 1/2 to 3/2: sums of products lose no digits to cancellation."""
    rng = np.random.default_rng(seed)
    return {t.name: rng.uniform(0.5, 1.5, [whole(i.extent, numbers) for i in t.indices]) for t in graph.sources}


def scalars_of(graph: Graph) -> dict[str, float]:
    """A value for each of the kernels' arguments: what a cascade reads without any index."""
    einsums = (*graph.given, *graph.einsums)
    read = sorted({t.name for e in einsums for t in e.inputs if t.name not in graph.producers and not t.indices})
    return {name: 0.6 + 0.2 * n for n, name in enumerate(read)}


def close(found: Array, wanted: Array) -> bool:
    """Whether two arrays agree up to float64 rounding; an entry that nothing wrote (NaN) never does."""
    return found.shape == wanted.shape and bool(np.allclose(found, wanted, rtol=1e-9, atol=1e-11))


def same_graphs(before: Graph, after: Graph, numbers: Numbers, names: Iterable[str] | None = None) -> bool:
    """Whether two graphs give their outputs, or *names*, the same values on the same inputs."""
    inputs = inputs_of(before, numbers)
    wanted, found = (evaluate(graph, inputs, scalars_of(before), numbers) for graph in (before, after))
    return all(close(found[name], wanted[name]) for name in names or before.outputs)


def computes_its_graph(schedule: Schedule, numbers: Numbers) -> bool:
    """Whether *schedule*, run tile by tile, leaves in every output what its graph means."""
    inputs = inputs_of(schedule.graph, numbers)
    wanted = evaluate(schedule.graph, inputs, scalars_of(schedule.graph), numbers)
    found = execute(schedule, inputs, scalars_of(schedule.graph), numbers)
    return all(close(found[name], wanted[name]) for name in schedule.graph.outputs)


def small_extents(before: Graph, after: Graph, extent: int) -> tuple[dict[str, int], dict[str, int]]:
    """*extent* for each index of either graph; an index that the second has in parts is as long as all parts of the first."""
    found = dict.fromkeys(before.indices | after.indices, extent)
    parts = {i.part_of for i in after.indices.values() if i.part_of and i.name not in before.indices}
    return found | dict.fromkeys(parts, extent**2), found


def streamed(graph: Graph, indices: Iterable[str], tile: int) -> Schedule:
    """All of *graph* in one kernel that runs over *indices* in tiles."""
    loops = tuple(Loop((graph.indices[name],), sp.Integer(tile)) for name in indices)
    return Schedule(graph, (Kernel(tuple(e.output.name for e in graph.einsums), loops),))


def rescaled_over(graph: Graph) -> tuple[str, ...]:
    """The indices that a running maximum of *graph* runs over."""
    maxima = (graph.producers[e.rescale] for e in graph.einsums if e.rescale is not None)
    return tuple(dict.fromkeys(i.name for e in maxima for i in e.reduced))


def counted(schedule: Schedule, numbers: Numbers) -> dict[str, tuple[Any, Any]]:
    """The closed form of what each tensor moves (read, written), tensors that never move left out."""
    moves = {n: (value(m.read, numbers), value(m.write, numbers)) for n, m in traffic(schedule).by_tensor.items()}
    return {name: moved for name, moved in moves.items() if moved != (0, 0)}


def walked(schedule: Schedule, numbers: Numbers) -> dict[str, tuple[Any, Any]]:
    """The same from the tile walker."""
    return {name: moved for name, moved in walk(schedule, numbers).moves.items() if moved != (0, 0)}


def cache_agrees(schedule: Schedule, numbers: Numbers, *, running: int, capacity: int, caches: int = 1) -> bool:
    """Whether an LRU cache shows of shared tensors what the wave model says: as much where it is exact, else no more.

    Beside what CTAs keep for themselves no more, but for what an earlier kernel hands on: its lines are that kernel's tiles.
    """
    masked = schedule.graph.mask is not None
    widths = dict.fromkeys(schedule.graph.tensors, Fraction(2))
    at = {**numbers, "C": running, "C_L2": capacity, "n_L2": caches}
    at |= {str(s): 2 for t in schedule.graph.tensors.values() for s in t.width.free_symbols}
    replayed = replay_cache(schedule, at, running=running, capacity=capacity, caches=caches, widths=widths)
    try:
        moves = dram(schedule).by_tensor
    except DomainError:  # a nest that would sum something again is refused, not counted
        return True
    for shared in (s for kernel in schedule.kernels for s in sharings(schedule, kernel)):
        alone = value(shared.beside, at) == 0
        if not alone and any(t.name in schedule.graph.producers for t in shared.tensors):
            continue
        formula = sum(2 * value(moves[t.name].read, at) for t in shared.tensors)
        witness = sum(replayed[t.name][0] for t in shared.tensors)
        exact = alone and holds(shared.is_exact(masked=masked), at)
        if witness > formula or (witness < formula and exact):
            return False
    return True


def looped(schedule: Schedule) -> set[tuple[str, str]]:
    """(Einsum, index) pairs: the Einsum runs in a kernel with a loop over the index."""
    return {(n, i.name) for k in schedule.kernels for n in k.einsums for loop in k.loops for i in loop.indices}


def losses(rule: Rule[Any], subject: Subject, numbers: Numbers = RAGGED) -> set[str]:
    """What goes wrong when *rule* rewrites the first thing of its shape in *subject*, its clauses ignored."""
    match = next(iter(rule.shape(subject)))
    try:
        after = rule.rewrite(subject, match)
    except (IllFormedError, DomainError):
        return {"ill-formed"}
    if isinstance(subject, Graph):
        return _graph_losses(subject, after, numbers)
    return _schedule_losses(subject, after, numbers)


def _graph_losses(before: Graph, after: Graph, numbers: Numbers) -> set[str]:
    found = set()
    if not same_graphs(before, after, numbers):
        found.add("values")
    over = rescaled_over(after)
    try:
        streams = not over or computes_its_graph(streamed(after, over, 2), numbers)
    except ValueError:  # a sum cannot follow a maximum that it has no row for
        streams = False
    return found if streams else {*found, "values when streamed"}


def _schedule_losses(before: Schedule, after: Schedule, numbers: Numbers) -> set[str]:
    found = set()
    try:
        kept = not computes_its_graph(before, numbers) or computes_its_graph(after, numbers)
    except IllFormedError:  # a sum is to follow a maximum that another kernel makes
        kept = False
    if not kept:
        found.add("values")
    try:
        agrees = counted(after, numbers) == walked(after, numbers)
    except DomainError:  # what the clause keeps out is refused, not counted
        agrees = False
    if not agrees:
        found.add("traffic")
    if not looped(before) <= looped(after):
        found.add("loops")
    if any(k.residency for k in after.kernels):
        sides = [(running, capacity) for running in (1, 2, 3, 5, 8) for capacity in (16, 48, 96, 192, 400, 900)]
        if not all(cache_agrees(after, numbers, running=r, capacity=c) for r, c in sides):
            found.add("cache")
    if visible(before) == visible(after) and walked(before, numbers) == walked(after, numbers):
        found.add("nothing changes")
    return found


def visible(schedule: Schedule) -> tuple[Any, ...]:
    """All of a schedule but where its partial sums live: that shows only in what moves."""
    return tuple(kernel.with_(in_memory=False) for kernel in schedule.kernels)

"""Work by pipe: useful work under a named convention, and the work a schedule really runs.

One multiply-add is 2 FLOP on the matrix pipe. Every other operator is one operation a point on the pipe that runs it; the
pipes are never added up, since they run at different rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import sympy as sp

from derive.cost import Cost, Unit
from derive.coverage import coverage
from derive.einsum import Einsum, Map, Reduce
from derive.errors import IllFormedError
from derive.extremes import up
from derive.graph import Graph
from derive.schedule import Kernel, Schedule

FLOPS_PER_MULTIPLY_ADD = 2
ONE = sp.Integer(1)


class Pipe(Enum):
    """A unit of an SM with a rate of its own."""

    MMA = "mma"
    """Matrix multiply-accumulate; counted in FLOP."""
    VECTOR = "vector"
    """Everything elementwise and every reduction outside a matrix product; counted in operations."""
    SFU = "exp"
    """The special-function unit's exponentials; counted in operations."""


class Convention(Enum):
    """How masked pairs enter the useful work."""

    EXACT = "exact"
    """Pairs the mask keeps."""
    DENSE = "dense"
    """The mask ignored."""
    HALF = "half"
    """Half of dense when there is a mask: the papers' causal convention."""
    TILED = "tiled"
    """Whole tiles that the schedule runs."""


_MAP_OPERATIONS: dict[Map, dict[Pipe, int]] = {
    Map.COPY: {},
    Map.VIEW: {},
    Map.MUL: {Pipe.VECTOR: 1},
    Map.ADD: {Pipe.VECTOR: 1},
    Map.SUB: {Pipe.VECTOR: 1},
    Map.DIV: {Pipe.VECTOR: 1},
    Map.NEG: {Pipe.VECTOR: 1},
    Map.EXP: {Pipe.SFU: 1},
    Map.LOG: {Pipe.SFU: 1},
    Map.TANH: {Pipe.SFU: 1},
    Map.SIGMOID: {Pipe.SFU: 1, Pipe.VECTOR: 2},
    Map.RELU: {Pipe.VECTOR: 1},
    Map.MAXIMUM: {Pipe.VECTOR: 1},
    Map.TOP: {Pipe.VECTOR: 1},
    Map.GATHER: {},
    Map.POSITION: {},
    Map.KEEP: {Pipe.VECTOR: 1},
    Map.INVERSE: {Pipe.VECTOR: 2},
    Map.SOFTMAX: {},
    Map.SOFTMAX_GRADIENT: {},
}
"""Operations a point. A sigmoid is 1/2 + tanh(x/2)/2, as arXiv:2409.04431 (FlashSigmoid) runs it; of a generated dropout mask
the comparison counts, the integer rounds of the generator do not; of a top, one comparison an element that it looks through,
not what keeping the largest in order takes; of an inverse, each multiply-add of its substitution, row after row (kernels that
merge the inverses of small blocks move a part of that to the matrix pipe)."""
_REDUCE_PIPE = {Reduce.SUM: Pipe.VECTOR, Reduce.MAX: Pipe.VECTOR}


def is_contraction(einsum: Einsum) -> bool:
    """A matrix product: a sum of products in which each factor brings an output index that the other lacks."""
    if einsum.map is not Map.MUL or einsum.reduce is not Reduce.SUM:
        return False
    left, right = (set(t.indices) for t in einsum.inputs)
    output = set(einsum.output.indices)
    return bool(left & output - right) and bool(right & output - left)


def is_accumulated(graph: Graph, einsum: Einsum) -> bool:
    """Whether it adds two matrix products that nothing else reads: one accumulator takes both, and the addition is free."""
    if einsum.map is not Map.ADD or einsum.reduce is not None:
        return False
    return all(
        t.indices == einsum.output.indices
        and t.name in graph.producers
        and is_contraction(graph.producers[t.name])
        and graph.readers[t.name] == (einsum,)
        and t.name not in graph.outputs
        for t in einsum.inputs
    )


def operations(einsum: Einsum) -> dict[Pipe, int]:
    """Operations at each point of the iteration space, by pipe.

    Raises:
        IllFormedError: the operator is opaque; a rule must open it first.
    """
    if einsum.map.is_opaque:
        name = einsum.map.value
        raise IllFormedError(f"{einsum}: {name} is opaque to counting; apply split-{name.replace('_', '-')} first")
    if is_contraction(einsum):
        return {Pipe.MMA: FLOPS_PER_MULTIPLY_ADD}
    found = dict(_MAP_OPERATIONS[einsum.map])
    if einsum.reduce is not None:
        pipe = _REDUCE_PIPE[einsum.reduce]
        found[pipe] = found.get(pipe, 0) + 1
    return found


def flops(graph: Graph, convention: Convention = Convention.EXACT) -> dict[Pipe, Cost]:
    """Useful work by pipe.

    Args:
        graph: a cascade without opaque operators.
        convention: how masked pairs count; ``TILED`` needs a schedule, see ``executed``.

    Raises:
        IllFormedError: an operator is opaque.
    """
    return _total((e, _points(e, convention)) for e in graph.einsums if not is_accumulated(graph, e))


def executed(schedule: Schedule, pad: sp.Expr = ONE) -> dict[Pipe, Cost]:
    """Work that *schedule* runs, by pipe: whole tiles, and every pair where no masked tile is skipped.

    Args:
        schedule: what is run.
        pad: what the widths of matrix products in a fused kernel, such as d and d_v, are rounded up to a multiple of.
    """
    return _total(run for kernel in schedule.kernels for run in _runs(schedule, kernel, pad))


def products(schedule: Schedule, kernel: Kernel, pad: sp.Expr = ONE) -> tuple[tuple[Einsum, Cost], ...]:
    """FLOP that *kernel* runs in each matrix product; together what ``executed`` counts on the matrix pipe."""
    runs = ((e, points) for e, points in _runs(schedule, kernel, pad) if is_contraction(e))
    return tuple((e, Cost(FLOPS_PER_MULTIPLY_ADD * points, Unit.FLOP)) for e, points in runs)


def kernel_executed(schedule: Schedule, kernel: Kernel) -> dict[Pipe, Cost]:
    """The same for one kernel."""
    return _total(_runs(schedule, kernel, ONE))


def _runs(schedule: Schedule, kernel: Kernel, pad: sp.Expr) -> Iterator[tuple[Einsum, sp.Expr]]:
    """Each Einsum of *kernel* that is work, with the points that are run of it."""
    for e in schedule.nodes(kernel):
        if is_accumulated(schedule.graph, e) and all(t.name in kernel.einsums for t in e.inputs):
            continue
        yield e, _run_points(schedule, kernel, e, pad=pad if is_contraction(e) and kernel.loops else ONE)


def rescaling(schedule: Schedule) -> dict[Pipe, Cost]:
    """Work that an online softmax adds: at each trip, exp(m_old - m_new) a row and one product an element rescaled."""
    found: dict[Pipe, sp.Expr] = {Pipe.VECTOR: sp.Integer(0), Pipe.SFU: sp.Integer(0)}
    for kernel in schedule.kernels:
        maxima: set[str] = set()
        for e in schedule.nodes(kernel):
            if e.rescale is None or kernel.loop_of(e.reduced[0].name) is None:
                continue
            trips = _run_points(schedule, kernel, e, whole_tiles_of=e.reduced[0].name)
            found[Pipe.VECTOR] += trips
            if e.rescale not in maxima:
                maxima.add(e.rescale)
                maximum = schedule.graph.producers[e.rescale]
                found[Pipe.SFU] += _run_points(schedule, kernel, maximum, whole_tiles_of=e.reduced[0].name)
    return {pipe: Cost(amount, _UNITS[pipe]) for pipe, amount in found.items()}


_UNITS = {Pipe.MMA: Unit.FLOP, Pipe.VECTOR: Unit.OPERATION, Pipe.SFU: Unit.OPERATION}


def _total(points: object) -> dict[Pipe, Cost]:
    found = dict.fromkeys(Pipe, sp.Integer(0))
    for einsum, amount in points:  # type: ignore[attr-defined]
        for pipe, each in operations(einsum).items():
            found[pipe] += each * amount
    return {pipe: Cost(amount, _UNITS[pipe]) for pipe, amount in found.items()}


def _points(einsum: Einsum, convention: Convention) -> sp.Expr:
    dense = sp.Mul(*(i.extent for i in einsum.space))
    if einsum.domain is not None and convention is Convention.DENSE:
        return dense
    if einsum.domain is not None and convention is Convention.HALF:
        return dense / 2
    return einsum.points


def _run_points(
    schedule: Schedule, kernel: Kernel, einsum: Einsum, *, whole_tiles_of: str | None = None, pad: sp.Expr = ONE
) -> sp.Expr:
    """Points that *kernel* runs of *einsum*, tiled indices in whole tiles; a tile of *whole_tiles_of* is one point.

    Indices without a loop are rounded up to a multiple of *pad*. What does not depend on a grid loop is run again by each of
    its CTAs.
    """
    names = {i.name for i in einsum.space}
    met = coverage(schedule.mask_of(kernel), kernel.loops) if kernel.skips_masked else None
    amount = einsum.substitutions
    pending = dict.fromkeys(i for i in einsum.space if i not in einsum.inverted)
    over = [loop for loop in kernel.loops if any(i.name in names for i in loop.indices)]
    if met is not None and (met.keys not in over or (met.rows not in over and not met.rows.grid)):
        met = None
    for loop in kernel.loops:
        if loop not in over and not loop.grid:
            continue
        for i in loop.indices:
            pending.pop(i, None)
        alone = loop not in over or whole_tiles_of in {i.name for i in loop.indices}
        rows = 1 if alone else loop.tile
        if met is not None and loop in (met.rows, met.keys, met.parts):
            amount *= (met.tiles if loop == met.keys else 1) * rows
        else:
            amount *= loop.trips * rows
    return amount * sp.Mul(*(i.extent if pad == 1 else pad * up(i.extent / pad) for i in pending))

"""The tile walker: every loop nest walked literally, one tile at a time, counting what enters and leaves the SMs.

A CTA holds at most one tile of each tensor. A tile is loaded when an iteration needs one that is not held. A partial
sum leaves the SM when its tile changes, and comes back at the tile's next visit; where it lives in memory from the
start, the first visit reads it too. No formula of traffic, masks or tile counts is used: ragged ends, masks and head
packing come out of positions alone.

What moves for a tile of a partial sum that a CTA visits n times (a visit lasts while the tile does not change):

    kept on chip between visits        reads n - 1    writes n if it is an output, else n - 1 (nobody reads the last)
    in memory, and it leaves the SM    reads n        writes n, or n - 1 where an output is finished in its place
    output, never visited              reads 0        writes 1
    added to by several CTAs           reads n        writes n, for each CTA; a zero to each element before them

A partial sum in memory leaves the SM when, inside a sequential loop that it is summed over, a sequential loop that carries
it has more than one trip.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import NamedTuple

from derive.einsum import Einsum, Tensor
from derive.evaluate import sizes
from derive.replay_gather import brought_in, tables_of
from derive.replay_mask import Coordinates, Tiles, kept_tiles
from derive.replay_operand import Operand, Table, picked
from derive.replay_state import state_moves
from derive.schedule import Kernel, Schedule

Values = Mapping[str, int | Fraction]


class Access(NamedTuple):
    """One tile that crosses the boundary of an SM; ``tile`` counts tiles along each loop that carries the tensor."""

    tensor: str
    tile: Coordinates
    elements: int
    is_read: bool


Step = list[Access]
"""What one CTA moves at one innermost iteration, in order."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk counted.

    Attributes:
        moves: elements (read, written) by tensor, over all kernels; tensors that never move are there with zeros.
        tile_visits: innermost iterations that were run; a kernel without loops has one.
        points: points executed in whole tiles, by what the Einsum defines; a ragged tile counts like a whole one.
        live: elements of inputs held at once, the most in any CTA, by kernel.
    """

    moves: dict[str, tuple[int, int]]
    tile_visits: int
    points: dict[str, int]
    live: dict[str, int]


@dataclass(frozen=True, slots=True)
class _PartialSum:
    """How a partial sum moves; see the table above."""

    operand: Operand
    reads_first: bool
    writes_last: bool
    is_output: bool


class Nest:
    """One kernel's loop nest with numbers in it.

    Args:
        schedule: the schedule that *kernel* is part of.
        kernel: the kernel to walk.
        values: the value of each symbol, by name.

    Raises:
        UnboundError: a symbol of an extent or a tile has no value.
        DomainError: an extent or a tile is no whole number.
    """

    def __init__(self, schedule: Schedule, kernel: Kernel, values: Values) -> None:
        self.kernel = kernel
        self._extents = sizes(schedule.graph, values)
        self.loops = [Tiles(loop, self._extents, values) for loop in kernel.loops]
        self._grid = len(kernel.grid)
        self._iterations: dict[Coordinates, list[Coordinates]] = {}
        self._kept = (
            kept_tiles(schedule.mask_of(kernel), self.loops, values, self._extents) if kernel.skips_masked else None
        )
        self.nodes = schedule.nodes(kernel)
        self.tables = {t.name: Table(t, p, self.loops, self._extents) for t, p in tables_of(self.nodes)}
        read = brought_in(self.nodes, schedule.inputs_of(kernel))
        self.inputs = [self.tables.get(t.name) or self._operand(t) for t in read]
        self.finished = finished_in_place(schedule, kernel)
        outputs = schedule.outputs_of(kernel)
        self._sums = [self._partial_sum(e, e.output in outputs) for e in self.nodes if is_partial_sum(kernel, e)]
        self.in_memory = {s.operand.name for s in self._sums if s.reads_first}
        summed = {s.operand.name for s in self._sums}
        self._outputs = [self._operand(t) for t in outputs if t.name not in summed]
        self._states = [(self._operand(t), kernel.loops.index(loop)) for t, loop in schedule.states_of(kernel)]

    def _operand(self, tensor: Tensor) -> Operand:
        return Operand(tensor, self.loops, self._extents)

    def _partial_sum(self, einsum: Einsum, is_output: bool) -> _PartialSum:
        tensor = einsum.output
        operand = self._operand(tensor)
        if added_across_ctas(self.kernel, einsum):
            return _PartialSum(operand, reads_first=True, writes_last=True, is_output=False)
        summed = [n for n, t in enumerate(self.loops) if n >= self._grid and set(t.loop.indices) & set(einsum.reduced)]
        leaves = any(n > summed[0] and self.loops[n].trips > 1 for n in operand.carriers)
        in_memory = self.kernel.in_memory and leaves
        stored = in_memory and tensor.name not in self.finished.values()
        return _PartialSum(operand, in_memory, is_output or stored, is_output)

    def held(self, access: Access) -> int:
        """Elements that a CTA holds of an input once it has loaded a tile: of a table, those that it held before too."""
        table = self.tables.get(access.tensor)
        return access.elements if table is None else table.elements(access.tile)

    def zeroed(self) -> dict[str, int]:
        """Elements set to zero before the first CTA starts, by tensor: all of what CTAs add their shares to."""
        added = (e.output for e in self.nodes if added_across_ctas(self.kernel, e))
        return {t.name: prod(self._extents[i.name] for i in t.indices) for t in added}

    def ctas(self) -> Iterator[Coordinates]:
        """Every CTA in grid order."""
        return product(*(range(tiles.trips) for tiles in self.loops[: self._grid]))

    def iterations(self, cta: Coordinates) -> list[Coordinates]:
        """Its innermost iterations in order, without those that the mask empties."""
        if cta not in self._iterations:
            found = [cta + at for at in product(*(range(tiles.trips) for tiles in self.loops[self._grid :]))]
            if self._kept is not None:
                at_tile, kept = picked(self._kept[0]), self._kept[1]
                found = [at for at in found if at_tile(at) in kept]
            self._iterations[cta] = found
        return self._iterations[cta]

    def steps(self, cta: Coordinates, *, backwards: bool = False) -> list[Step]:
        """What a CTA moves at each iteration; a CTA without any writes its outputs in one step.

        Args:
            cta: one of ``ctas()``.
            backwards: run the iterations last to first.
        """
        iterations = self.iterations(cta)[::-1] if backwards else self.iterations(cta)
        steps: list[Step] = [[] for _ in iterations] or [[]]
        for operand in self.inputs:
            for tile, first, elements in operand.loads(iterations, backwards=backwards):
                steps[first].append(Access(operand.name, tile, elements, True))
        for partial in self._sums:
            self._move_partial_sum(partial, cta, iterations, steps)
        for operand, n in self._states:
            how = operand.tile_at, n, self.loops[n].trips, self.kernel.in_memory
            for at, tile, is_read in state_moves(iterations, *how):
                steps[at].append(Access(operand.name, tile, operand.elements(tile), is_read))
        for operand in self._outputs:
            leaves = {tile: last for tile, _, last in operand.visits(iterations)}
            for tile in self._tiles_of(operand, cta):
                steps[leaves.get(tile, -1)].append(Access(operand.name, tile, operand.elements(tile), False))
        return steps

    def _tiles_of(self, operand: Operand, cta: Coordinates) -> Iterator[Coordinates]:
        """Every tile of a tensor that a CTA is responsible for; one whose pairs the mask leaves none of is nobody's."""
        ranges = ((cta[n],) if n < self._grid else range(self.loops[n].trips) for n in operand.carriers)
        if self._kept is None or not {*self._kept[0]} <= {*operand.carriers}:
            return product(*ranges)
        at_tile, kept = picked(tuple(map(operand.carriers.index, self._kept[0]))), self._kept[1]
        return (tile for tile in product(*ranges) if at_tile(tile) in kept)

    def _move_partial_sum(
        self, partial: _PartialSum, cta: Coordinates, iterations: list[Coordinates], steps: list[Step]
    ) -> None:
        operand = partial.operand
        visits = operand.visits(iterations)
        final = {tile: last for tile, _, last in visits}
        seen: set[Coordinates] = set()
        for tile, first, last in visits:
            if tile in seen or partial.reads_first:
                steps[first].append(Access(operand.name, tile, operand.elements(tile), True))
            seen.add(tile)
            if final[tile] != last or partial.writes_last:
                steps[last].append(Access(operand.name, tile, operand.elements(tile), False))
        if partial.is_output:
            for tile in self._tiles_of(operand, cta):
                if tile not in seen:
                    steps[-1].append(Access(operand.name, tile, operand.elements(tile), False))

    def points(self) -> dict[str, int]:
        """Points that each Einsum executes in whole tiles; tiles that the mask empties only where it is masked.

        What does not depend on a grid loop is executed by each CTA.
        """
        found: dict[str, int] = {}
        tiles_run: dict[tuple[int, ...], int] = {}
        for e in self.nodes:
            names = {i.name for i in e.space if i not in e.inverted}
            relevant = tuple(n for n, t in enumerate(self.loops) if names & {i.name for i in t.loop.indices})
            looped = {i.name for n in relevant for i in self.loops[n].loop.indices}
            tile = prod(self.loops[n].tile for n in relevant)
            rest = prod(self._extents[name] for name in names - looped) * self._substituted(e)
            run = tuple(sorted({*relevant, *range(self._grid)}))
            rows, keys = self._kept[0][:2] if self._kept is not None else (0, 0)
            skips = e.domain is not None or (keys in relevant and rows not in relevant and rows < self._grid)
            if self._kept is None or not skips:
                runs = prod(self.loops[n].trips for n in run)
            else:
                if run not in tiles_run:
                    tiles_run[run] = self._tiles_run(run)
                runs = tiles_run[run]
            found[e.output.name] = runs * tile * rest
        return found

    def _substituted(self, einsum: Einsum) -> int:
        """Multiply-adds of an inverse, counted one row after another, each element from those above it; 1 for anything else."""
        size = self._extents[einsum.inverted[0].name] if einsum.inverted else 0
        return sum(len(range(j, i)) for i in range(size) for j in range(i)) if einsum.inverted else 1

    def _tiles_run(self, relevant: tuple[int, ...]) -> int:
        """How many tiles the iterations that are run fall into, cut by the loops *relevant* alone."""
        return len({tile for cta in self.ctas() for tile in map(picked(relevant), self.iterations(cta))})


def is_partial_sum(kernel: Kernel, einsum: Einsum) -> bool:
    """Whether an Einsum of *kernel* reduces an index that a sequential loop runs over: its result builds up."""
    sequential = any(i in einsum.reduced for loop in kernel.sequential for i in loop.indices)
    return sequential or added_across_ctas(kernel, einsum)


def added_across_ctas(kernel: Kernel, einsum: Einsum) -> bool:
    """Whether CTAs add their shares of an Einsum's result to memory."""
    return kernel.atomic and any(i in einsum.reduced for loop in kernel.grid for i in loop.indices)


def finished_in_place(schedule: Schedule, kernel: Kernel) -> dict[str, str]:
    """Outputs that overwrite an internal partial sum kept in memory, e.g. ``{"O": "U_O"}`` for O = U_O / l."""
    if not kernel.in_memory:
        return {}
    sums = {e.output for e in schedule.nodes(kernel) if is_partial_sum(kernel, e)} & set(schedule.internals_of(kernel))
    found: dict[str, str] = {}
    for output in schedule.outputs_of(kernel):
        for tensor in schedule.graph.producers[output.name].inputs:
            if tensor in sums and tensor.indices == output.indices:
                found.setdefault(output.name, tensor.name)
    return found


def stream(schedule: Schedule, kernel: Kernel, values: Values) -> Iterator[list[Access]]:
    """Everything each CTA of *kernel* moves, CTAs in grid order."""
    nest = Nest(schedule, kernel, values)
    for cta in nest.ctas():
        yield [access for step in nest.steps(cta) for access in step]


def walk(schedule: Schedule, values: Values) -> Walk:
    """Run every kernel's loop nest and count.

    Args:
        schedule: what to run; it need not be one that the rules would make.
        values: the value of each symbol, by name.

    Raises:
        UnboundError: a symbol of an extent or a tile has no value.
        DomainError: an extent or a tile is no whole number.
    """
    read = {name: 0 for name, t in schedule.graph.tensors.items() if t.indices}
    written = dict(read)
    visits = 0
    points: dict[str, int] = {}
    live: dict[str, int] = {}
    for kernel in schedule.kernels:
        nest = Nest(schedule, kernel, values)
        points |= nest.points()
        inputs = {operand.name for operand in nest.inputs}
        for name, elements in nest.zeroed().items():
            written[name] += elements
        peak = 0
        for cta in nest.ctas():
            visits += len(nest.iterations(cta))
            held: dict[str, int] = {}
            for step in nest.steps(cta):
                for name, _, elements, is_read in step:
                    (read if is_read else written)[name] += elements
                held |= {access.tensor: nest.held(access) for access in step if access.tensor in inputs}
                peak = max(peak, sum(held.values()))
        live[kernel.name] = peak
    return Walk({name: (read[name], written[name]) for name in read}, visits, points, live)

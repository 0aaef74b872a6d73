"""Schedule -> values (NumPy), tile by tile in the order of the loop nest: what a kernel written that way would return.

Each CTA has a fast memory of its own. In it

* a sum or a maximum over an index that a sequential loop runs over is built up tile by tile. When its tile changes, what
  there is so far goes to memory, and comes back at the next visit;
* a sum rescaled by a running maximum m remembers the m it is relative to, and is multiplied by exp(m_old - m_new) before
  it goes on;
* whatever else reads a partial sum reads what there is *so far*. Where that is not yet the final value, as in a kernel
  that tiles an index it needs two passes over, the result is wrong, as it would be on a machine;
* a partial sum that itself waits for another one (over an inner loop) goes on when that one is complete;
* the state of a recurrence is kept from trip to trip of the loop it runs along; the first trip finds zeros, and a new state
  stands when the last iteration of a trip is done;
* a sum that CTAs add their shares to is zero in memory at first, and each share is added to what stands there;
* a result is stored at the last iteration that needs its tile. A tile that no iteration visits is made of empty sums;
  if the mask itself empties the tile, nothing writes it and it stays NaN.

A loop that flattens several indices runs over one axis: tensors that carry them are reshaped for the kernel and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.evaluate import Values, arguments, axes_of, kept_block, on_axes, sizes, stepped, whole
from derive.graph import Recurrence
from derive.mask import Mask
from derive.operators import Array, Block, compute, generated
from derive.schedule import Kernel, Loop, Schedule
from derive.selection import numbers, selected

Coordinates = tuple[int, ...]
UNIT = {Reduce.SUM: 0.0, Reduce.MAX: -np.inf}
"""What combines with anything to that thing itself."""


def execute(
    schedule: Schedule, inputs: Mapping[str, Array], scalars: Mapping[str, float] | None, values: Values
) -> dict[str, Array]:
    """The value of every tensor that some kernel leaves in memory.

    Args:
        schedule: what to run, in the order it says.
        inputs: an array for each input of the graph, axes in the order of its indices.
        scalars: the kernels' arguments, e.g. ``{"c": 0.125}``.
        values: the value of each symbol, by name: extents and tiles.

    Raises:
        UnboundError: an input, a scalar or a symbol has no value.
        DomainError: an extent or a tile is no whole number.
    """
    memory = arguments(schedule.graph, inputs, scalars, values)
    left: dict[str, Array] = {}
    for kernel in schedule.kernels:
        written = _Launch(schedule, kernel, values, memory).run()
        memory |= written
        left |= written
    return {name: on_axes(schedule.graph.tensors[name], array) for name, array in left.items()}


class _Launch:
    """One kernel at work: its tensors in memory, in the layout of its loops."""

    def __init__(self, schedule: Schedule, kernel: Kernel, values: Values, memory: Mapping[str, Array]) -> None:
        self.kernel, self.values = kernel, values
        self.nodes = {e.output.name: e for e in schedule.nodes(kernel)}
        self.outputs = schedule.outputs_of(kernel)
        self.extents = sizes(schedule.graph, values)
        self.tiles = [whole(loop.tile, values) for loop in kernel.loops]
        self.trips = [range(-(-self._length(loop) // t)) for loop, t in zip(kernel.loops, self.tiles, strict=True)]
        self.axis = {i.name: _axis(loop) for loop in kernel.loops for i in loop.indices}
        read = {t.name: t for e in self.nodes.values() for t in e.inputs if t.name not in self.nodes}
        empty = {t.name: np.full([self.extents[i] for i in axes_of(t)], np.nan) for t in self.outputs}
        self.memory = {t.name: self._flattened(t, memory[t.name]) for t in read.values()}
        across = {i for loop in kernel.grid for i in loop.indices} if kernel.atomic else set()
        self.added = {name for name, e in self.nodes.items() if across & set(e.reduced)}
        for name in self.added:
            empty[name][...] = 0.0
        self.memory |= {t.name: self._flattened(t, empty[t.name]) for t in self.outputs}
        self.generated = {
            name: self._flattened(e.output, generated(e, [self.extents[i] for i in axes_of(e.output)], memory))
            for name, e in self.nodes.items()
            if e.map.is_generated
        }
        self.numbers = {
            name: self._flattened(replace(e.output, indices=e.paging.rows), numbers(e.paging, self.extents))
            for name, e in self.nodes.items()
            if e.paging is not None
        }
        mask = schedule.mask_of(kernel)
        masks = {e.domain for e in self.nodes.values()} | {mask}
        self.kept = {m: self._kept(m) for m in masks if m is not None}
        skips = kernel.skips_masked and mask is not None and {mask.row, mask.column} <= set(self.axis)
        self.skips = self.kept[mask] if skips and mask is not None else None
        sequential = {i for loop in kernel.sequential for i in loop.indices}
        self.partial = [name for name, e in self.nodes.items() if sequential & set(e.reduced)]
        self.reads = self._ancestors()
        runs = [run for run in schedule.graph.recurrences if run.einsums[0].output.name in self.nodes]
        self.steps = {i.name: n for n, loop in enumerate(kernel.loops) for i in loop.indices}
        self.runs = [run for run in runs if run.index in self.steps]
        self.stepped = {e.output.name: run for run in runs for e in run.einsums}

    def run(self) -> dict[str, Array]:
        """Run every CTA; the outputs."""
        grid = len(self.kernel.grid)
        for cta in product(*self.trips[:grid]):
            _Cta(self, [cta + rest for rest in product(*self.trips[grid:])]).run()
        return {t.name: self._restored(t) for t in self.outputs}

    def axes(self, tensor: Tensor) -> tuple[str, ...]:
        """The axes of a tensor in this kernel: the indices of one loop are one axis."""
        return tuple(dict.fromkeys(self.axis.get(name, name) for name in axes_of(tensor)))

    def loops_of(self, indices: Iterable[Index]) -> tuple[int, ...]:
        """Positions of the loops that run over some of *indices*."""
        wanted = set(indices)
        return tuple(n for n, loop in enumerate(self.kernel.loops) if wanted & set(loop.indices))

    def tile(self, block: Block, at: Coordinates) -> Block:
        """The part of an array that the iteration *at* sees, as a view."""
        spans = self._spans(at)
        return Block(block.axes, block.values[tuple(spans.get(axis, slice(None)) for axis in block.axes)])

    def shape(self, tensor: Tensor, at: Coordinates) -> list[int]:
        """The shape of a tensor's tile."""
        spans = self._spans(at)
        lengths = {_axis(loop): self._length(loop) for loop in self.kernel.loops}
        return [
            len(range(*spans[axis].indices(lengths[axis]))) if axis in spans else self.extents[axis]
            for axis in self.axes(tensor)
        ]

    def waits(self, name: str) -> bool:
        """Whether a partial sum needs others complete that are reduced by loops which it does not run over itself."""
        over = {n for read in self.reads[name] & set(self.partial) for n in self.loops_of(self.nodes[read].reduced)}
        return any(not self.kernel.loops[n].grid for n in over - set(self.loops_of(self.nodes[name].space)))

    def _ancestors(self) -> dict[str, set[str]]:
        """For each tensor defined here, what it reads of those defined here, at any remove."""
        found: dict[str, set[str]] = {}
        for name, e in self.nodes.items():
            direct = {t.name for t in e.inputs if t.name in self.nodes} | ({e.rescale} if e.rescale else set())
            found[name] = direct.union(*(found.get(read, set()) for read in direct))
        return found

    def _length(self, loop: Loop) -> int:
        return prod(self.extents[i.name] for i in loop.indices)

    def _spans(self, at: Coordinates) -> dict[str, slice]:
        loops = zip(self.kernel.loops, self.tiles, at, strict=True)
        return {_axis(loop): slice(trip * tile, (trip + 1) * tile) for loop, tile, trip in loops}

    def _layout(self, tensor: Tensor) -> list[str]:
        """Its indices in the order of its axes here."""
        together = {_axis(loop): [i.name for i in loop.indices] for loop in self.kernel.loops}
        return [name for axis in self.axes(tensor) for name in together.get(axis, [axis])]

    def _flattened(self, tensor: Tensor, array: Array) -> Block:
        """An array with the indices of each loop as one axis."""
        ordered = Block(axes_of(tensor), array).over(self._layout(tensor))
        lengths = {_axis(loop): self._length(loop) for loop in self.kernel.loops}
        shape = [lengths[axis] if axis in lengths else self.extents[axis] for axis in self.axes(tensor)]
        return Block(self.axes(tensor), ordered.reshape(shape))

    def _restored(self, tensor: Tensor) -> Array:
        """The array of an output with its indices apart and in order."""
        layout = self._layout(tensor)
        apart = self.memory[tensor.name].values.reshape([self.extents[name] for name in layout])
        return Block(tuple(layout), apart).over(axes_of(tensor))

    def _kept(self, mask: Mask) -> Block:
        """The pairs that a mask keeps, along the axes of this kernel."""
        pairs = kept_block(mask, self.values).values
        for n, name in enumerate(mask.axes):
            loop = self.kernel.loop_of(name)
            names = [i.name for i in loop.indices] if loop else [name]
            faster = prod(self.extents[x] for x in names[names.index(name) + 1 :])
            rows = np.arange(prod(self.extents[x] for x in names)) // faster % self.extents[name]
            pairs = pairs.take(rows, axis=n)
        return Block(tuple(self.axis.get(name, name) for name in mask.axes), pairs)


def _axis(loop: Loop) -> str:
    """The name of the axis that a loop runs over."""
    return "*".join(i.name for i in loop.indices)


class _Partial(NamedTuple):
    """A sum or a maximum of what has been visited so far, and the running maximum that it is relative to."""

    values: Array
    relative_to: Array


class _Cta:
    """One CTA: its fast memory, and the partial sums that have left it."""

    def __init__(self, launch: _Launch, nest: list[Coordinates]) -> None:
        self.launch, self.nest = launch, nest
        self.iterations = [at for at in nest if launch.skips is None or launch.tile(launch.skips, at).values.any()]
        self.held: dict[str, tuple[Coordinates, _Partial]] = {}
        self.spilled: dict[tuple[str, Coordinates], _Partial] = {}
        self.made: dict[str, Array] = {}
        self.states: dict[tuple[str, Coordinates], Array] = {}

    def run(self) -> None:
        """Every iteration in order, then the tiles that none has visited."""
        turns = {name: self._turns(name) for name in self.launch.partial}
        last = {t.name: {self._tile_of(t, at): at for at in self.iterations} for t in self.launch.outputs}
        done = [set({self._steps_of(run, at): at for at in self.iterations}.values()) for run in self.launch.runs]
        for at in self.iterations:
            self.made.clear()
            for name in self.launch.partial:
                if at in turns[name]:
                    self._accumulate(name, at)
            for t in self.launch.outputs:
                if last[t.name][self._tile_of(t, at)] == at:
                    self._store(t, at)
            for run, ends in zip(self.launch.runs, done, strict=True):
                if at in ends:
                    self._step(run, at, keep=True)
        for t in self.launch.outputs:
            for at in {
                self._tile_of(t, at): at for at in self.nest if self._tile_of(t, at) not in last[t.name]
            }.values():
                self.made.clear()
                if self.launch.skips is None or not set(self.launch.skips.axes) <= set(self.launch.axes(t)):
                    self._store(t, at)

    def _steps_of(self, run: Recurrence, at: Coordinates) -> tuple[Coordinates, ...]:
        """Which loops an iteration stands in of those that a recurrence runs over: its own, those that its results carry."""
        outside = at[: self.launch.steps[run.index] + 1]
        return (outside, *(self._tile_of_state(e, at) for e in run.einsums if e.previous is not None))

    def _step(self, run: Recurrence, at: Coordinates, *, keep: bool = False) -> None:
        """All that a recurrence makes in one trip; *keep* its state for the next one."""
        names = {e.output.name for e in run.einsums}
        if names & set(self.launch.partial):
            raise IllFormedError(f"the recurrence along {run.index} sums over an index that a loop cuts; run it whole")
        read = {t: self._value(t, at) for e in run.einsums for t in e.inputs if t.name not in names}
        shapes = {e.output.name: self.launch.shape(e.output, at) for e in run.einsums}
        kept = {
            e.output.name: None if e.domain is None else self.launch.tile(self.launch.kept[e.domain], at)
            for e in run.einsums
        }
        behind = {e.output.name: (e.output.name, self._tile_of_state(e, at)) for e in run.einsums if e.previous}
        starts = run.index not in self.launch.steps or at[self.launch.steps[run.index]] == 0
        before = {} if starts else {name: self.states[key] for name, key in behind.items() if key in self.states}
        self.made |= stepped(run, self.launch.axes, read, shapes, kept, before)
        if keep:
            self.states |= {behind[name]: state for name, state in before.items()}

    def _tile_of_state(self, einsum: Einsum, at: Coordinates) -> Coordinates:
        indices = [i for i in einsum.output.indices if i.name != einsum.previous]
        return tuple(at[n] for n in self.launch.loops_of(indices))

    def _tile_of(self, tensor: Tensor, at: Coordinates) -> Coordinates:
        return tuple(at[n] for n in self.launch.loops_of(tensor.indices))

    def _turns(self, name: str) -> set[Coordinates]:
        """The iterations at which a partial sum goes on: one for each trip of the loops that its Einsum runs over."""
        loops = self.launch.loops_of(self.launch.nodes[name].space)
        order = self.iterations if self.launch.waits(name) else self.iterations[::-1]
        return set({tuple(at[n] for n in loops): at for at in order}.values())

    def _store(self, tensor: Tensor, at: Coordinates) -> None:
        stored = self.launch.tile(self.launch.memory[tensor.name], at).values
        stored[...] = self._value(tensor, at).values + (stored if tensor.name in self.launch.added else 0.0)

    def _partial(self, tensor: Tensor, at: Coordinates) -> _Partial:
        """What there is so far of a partial sum; another tile of it makes room."""
        tile = self._tile_of(tensor, at)
        if tensor.name in self.held and self.held[tensor.name][0] != tile:
            left, partial = self.held.pop(tensor.name)
            self.spilled[tensor.name, left] = partial
        if tensor.name not in self.held:
            reduce = self.launch.nodes[tensor.name].reduce
            assert reduce is not None
            unit = _Partial(np.full(self.launch.shape(tensor, at), UNIT[reduce]), np.array(-np.inf))
            self.held[tensor.name] = tile, self.spilled.pop((tensor.name, tile), unit)
        return self.held[tensor.name][1]

    def _value(self, tensor: Tensor, at: Coordinates) -> Block:
        """The tile of a tensor that an iteration sees, as far as it is known."""
        name = tensor.name
        if name not in self.launch.nodes:
            return self.launch.tile(Block(self.launch.axes(tensor), self.launch.memory[name].values), at)
        if name in self.launch.partial:
            return Block(self.launch.axes(tensor), self._partial(tensor, at).values)
        if name not in self.made and name in self.launch.stepped:
            self._step(self.launch.stepped[name], at)
        elif name not in self.made:
            self.made[name] = self._computed(self.launch.nodes[name], at)
        return Block(self.launch.axes(tensor), self.made[name])

    def _computed(self, einsum: Einsum, at: Coordinates) -> Array:
        """An Einsum over one tile of its iteration space."""
        if einsum.map.is_generated:
            operands = [self.launch.tile(self.launch.generated[einsum.output.name], at)]
        else:
            operands = [self._value(t, at) for t in einsum.inputs]
        kept = None if einsum.domain is None else self.launch.tile(self.launch.kept[einsum.domain], at)
        if einsum.map.is_selection:
            if einsum.paging is not None:
                operands.append(self.launch.tile(self.launch.numbers[einsum.output.name], at))
            operands = [
                selected(einsum, self.launch.axes(einsum.output), operands, self.launch.shape(einsum.output, at), kept)
            ]
        result = compute(einsum, self.launch.axes(einsum.output), operands, None if einsum.map is Map.TOP else kept)
        return np.broadcast_to(result, self.launch.shape(einsum.output, at))

    def _accumulate(self, name: str, at: Coordinates) -> None:
        """Add one tile's share to a partial sum."""
        einsum = self.launch.nodes[name]
        share = self._computed(einsum, at)
        so_far, relative_to = self._partial(einsum.output, at)
        if einsum.rescale is not None:
            if einsum.rescale not in self.launch.nodes:
                raise IllFormedError(f"{einsum} is rescaled as {einsum.rescale} rises, which another kernel makes")
            maximum = self._value(self.launch.nodes[einsum.rescale].output, at).over(self.launch.axes(einsum.output))
            with np.errstate(invalid="ignore"):
                rise = np.where(np.isneginf(relative_to), -np.inf, relative_to - maximum)
            so_far, relative_to = so_far * np.exp(rise), maximum
        combined = so_far + share if einsum.reduce is Reduce.SUM else np.maximum(so_far, share)
        self.held[name] = self._tile_of(einsum.output, at), _Partial(combined, relative_to)

"""The tile walk with every iteration of a kernel at once: a column of an array each, in the order in which they are run.

It counts what ``derive.replay`` counts, the same way: an iteration needs a tile of each tensor, a tile is loaded where the one
needed changes within a CTA, a partial sum comes back where its tile has been visited before. No formula of traffic, masks or
tile counts is used here either. The two walks share what classifies a tensor and nothing that counts; where a sum might
leave 64 bits, Python's own integers are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from derive.einsum import Einsum, Index, Tensor
from derive.evaluate import intervals, sizes, whole
from derive.mask import Mask
from derive.paging import Paging
from derive.replay import Values, Walk, added_across_ctas, finished_in_place, is_partial_sum
from derive.replay_gather import brought_in, tables_of
from derive.replay_pages import goes_on, rows_needed
from derive.schedule import Kernel, Loop, Schedule

Array = npt.NDArray[Any]
_LARGEST = 2**62
"""What 64-bit sums are trusted with."""


@dataclass(frozen=True, slots=True)
class _Operand:
    """A tensor as the loops of a kernel cut it.

    Attributes:
        name: its name in memory.
        carriers: the loops that move to another tile of it, by position.
        uncut: its indices that no loop runs over.
        paging: of a table of pages, how it says where rows lie; its carriers are then also the loops over these.
        others: the carriers of such a table itself.
    """

    name: str
    carriers: tuple[int, ...]
    uncut: tuple[Index, ...]
    paging: Paging[Index] | None = None
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sum:
    """A partial sum: the first loop it is summed over, and what becomes of it; ``None`` where CTAs add their shares to it."""

    operand: _Operand
    summed: int | None
    is_output: bool
    is_finished_in_place: bool


class KernelWalker:
    """One kernel, ready to be walked at any numbers.

    Args:
        schedule: the schedule that *kernel* is part of.
        kernel: the kernel to walk.
    """

    def __init__(self, schedule: Schedule, kernel: Kernel) -> None:
        self.kernel = kernel
        self.grid = len(kernel.grid)
        self.nodes = schedule.nodes(kernel)
        tables = {t.name: self._table(t, paging) for t, paging in tables_of(self.nodes)}
        read = brought_in(self.nodes, schedule.inputs_of(kernel))
        self.inputs = [tables.get(t.name) or self._operand(t) for t in read]
        outputs = schedule.outputs_of(kernel)
        sums = [e for e in self.nodes if is_partial_sum(kernel, e)]
        replaced = set(finished_in_place(schedule, kernel).values())
        self.sums = [self._sum(e, e.output in outputs, e.output.name in replaced) for e in sums]
        self.zeroed = [e.output for e in sums if added_across_ctas(kernel, e)]
        self.outputs = [self._operand(t) for t in outputs if t not in [e.output for e in sums]]
        self.states = [(self._operand(t), kernel.loops.index(loop)) for t, loop in schedule.states_of(kernel)]
        self.mask = schedule.mask_of(kernel) if kernel.skips_masked else None

    def _operand(self, tensor: Tensor) -> _Operand:
        loops = self.kernel.loops
        carriers = tuple(n for n, loop in enumerate(loops) if loop.carried_by(tensor))
        cut = {i for n in carriers for i in loops[n].indices}
        return _Operand(tensor.name, carriers, tuple(i for i in tensor.indices if i not in cut))

    def _table(self, table: Tensor, paging: Paging[Index]) -> _Operand:
        others = tuple(i for i in table.indices if i != paging.entry)
        own, by_row = (self._operand(replace(table, indices=i)) for i in (others, (*others, *paging.rows)))
        return replace(own, carriers=by_row.carriers, paging=paging, others=own.carriers)

    def _sum(self, einsum: Einsum, is_output: bool, is_finished_in_place: bool) -> _Sum:
        if added_across_ctas(self.kernel, einsum):
            return _Sum(self._operand(einsum.output), None, is_output=False, is_finished_in_place=False)
        loops = self.kernel.loops
        summed = next(n for n in range(self.grid, len(loops)) if set(loops[n].indices) & set(einsum.reduced))
        return _Sum(self._operand(einsum.output), summed, is_output, is_finished_in_place)


class _Rows:
    """The tiles of one loop: where each starts, and how many rows it has."""

    def __init__(self, loop: Loop, extents: Mapping[str, int], values: Values) -> None:
        self.tile = whole(loop.tile, values)
        self.extent = prod(extents[i.name] for i in loop.indices)
        self.starts = np.arange(0, self.extent, self.tile)
        self.each = np.minimum(self.tile, self.extent - self.starts)
        self.trips = len(self.starts)


class _At:
    """One kernel at numbers: its iterations, and what each moves."""

    def __init__(self, walker: KernelWalker, extents: Mapping[str, int], values: Values) -> None:
        self.walker, self.extents = walker, extents
        self.rows = [_Rows(loop, extents, values) for loop in walker.kernel.loops]
        self.trips = tuple(rows.trips for rows in self.rows)
        self.steps = self._coordinates(self.trips)
        self.pair = self._row_and_column(walker.mask)
        if walker.mask is not None and self.pair is not None:
            part = self._part(walker.mask)
            kept = self._kept_tiles(walker.mask, *self.pair, part, values)
            at = np.zeros(self.steps.shape[1], np.int64) if part is None else self.steps[part]
            self.steps = self.steps[:, kept[at, self.steps[self.pair[0]], self.steps[self.pair[1]]]]
        self.count = self.steps.shape[1]
        largest = prod(extents.values()) * max(1, prod(self.trips)) * max(1, len(walker.inputs))
        self._exact = np.int64 if largest < _LARGEST else object

    @staticmethod
    def _coordinates(trips: tuple[int, ...]) -> Array:
        """A column for each iteration of loops with so many *trips*, the last loop fastest."""
        return np.indices(trips).reshape(len(trips), prod(trips))

    def _row_and_column(self, mask: Mask | None) -> tuple[int, int] | None:
        """The loops over a mask's queries and keys, where they are two."""
        if mask is None:
            return None
        found = {i.name: n for n, loop in enumerate(self.walker.kernel.loops) for i in loop.indices}
        row, column = found.get(mask.row), found.get(mask.column)
        return None if row is None or column is None or row == column else (row, column)

    def _part(self, mask: Mask) -> int | None:
        """The loop over the parts that the keys are cut into."""
        if not mask.part:
            return None
        return next(n for n, loop in enumerate(self.walker.kernel.loops) if mask.part in {i.name for i in loop.indices})

    def _kept_tiles(self, mask: Mask, row: int, column: int, part: int | None, values: Values) -> Array:
        """Whether some query of a row tile sees some key of a column tile, in each part that the keys are cut into."""
        ends = intervals(mask, values)
        length = self.extents[mask.column]
        parts = 1 if part is None else self.trips[part]
        queries, keys = self._positions(row, mask.row), self._positions(column, mask.column)
        kept = np.zeros((parts, self.trips[row], self.trips[column]), bool)
        for i, start in enumerate(self.rows[row].starts):
            seen = np.zeros(parts * length, bool)
            for query in set(queries[start : start + self.rows[row].tile].tolist()):
                for first, last in ends[query]:
                    seen[first : max(first, last + 1)] = True
            for own in range(parts):
                kept[own, i] = np.logical_or.reduceat(seen[own * length :][keys], self.rows[column].starts)
        return kept

    def _positions(self, n: int, index: str) -> Array:
        """Where *index* stands in each row of loop *n*, whose first index is the slowest."""
        names = [i.name for i in self.walker.kernel.loops[n].indices]
        faster = prod(self.extents[name] for name in names[names.index(index) + 1 :])
        return np.arange(self.rows[n].extent) // faster % self.extents[index]

    @cached_property
    def _cta(self) -> Array:
        """The number of the CTA that runs each iteration, in grid order."""
        return self._numbered(tuple(range(self.walker.grid)), self.steps)

    def _numbered(self, loops: tuple[int, ...], steps: Array) -> Array:
        """One number for what *loops* make of each column of *steps*."""
        number = np.zeros(steps.shape[1], np.int64)
        for n in loops:
            number = number * self.trips[n] + steps[n]
        return number

    def tile_elements(self, operand: _Operand, steps: Array) -> Array:
        """Elements of the tile that each column of *steps* needs, before the indices that no loop cuts."""
        elements = np.ones(steps.shape[1], self._exact)
        if (paging := operand.paging) is not None:
            first, last = (row // self.extents[paging.row.name] for row in self._rows_needed(paging, steps))
            elements = elements * (last - first + 1)
        for n in operand.others if paging is not None else operand.carriers:
            elements = elements * self.rows[n].each[steps[n]]
        return elements

    def _rows_needed(self, paging: Paging[Index], steps: Array) -> tuple[Array, Array]:
        own = {i.name: n for n, x in enumerate(self.walker.kernel.loops) for i in x.indices if i in paging.rows}
        cut = {name: (steps[n] * self.rows[n].tile, self.rows[n].each[steps[n]]) for name, n in own.items()}
        return rows_needed(paging, self.extents, cut)

    def _still_held(self, table: _Operand, paging: Paging[Index], first: Array) -> int:
        """Entries that runs of iterations, which begin at *first*, hold from the run before."""
        follows = goes_on(*self._rows_needed(paging, self.steps[:, first]), self.extents[paging.row.name])
        follows &= self._cta[first][1:] == self._cta[first][:-1]
        return self.elements(replace(table, carriers=table.others, paging=None), self.steps[:, first[1:][follows]])

    def uncut(self, operand: _Operand) -> int:
        """How many times that, for the indices that no loop cuts."""
        return prod(self.extents[i.name] for i in operand.uncut)

    def elements(self, operand: _Operand, steps: Array) -> int:
        """Elements of the tiles at *steps*, added up."""
        return int(self.tile_elements(operand, steps).sum()) * self.uncut(operand)

    def visits(self, needed: Array) -> tuple[Array, Array]:
        """The first and the last iterations of each run in which one CTA needs the same thing."""
        if not self.count:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        changes = np.flatnonzero((needed[1:] != needed[:-1]) | (self._cta[1:] != self._cta[:-1])) + 1
        return np.concatenate(([0], changes)), np.concatenate((changes - 1, [self.count - 1]))

    def read(self, operand: _Operand) -> int:
        """Elements loaded of an input."""
        first, _ = self.visits(self._numbered(operand.carriers, self.steps))
        held = 0 if operand.paging is None else self._still_held(operand, operand.paging, first)
        return self.elements(operand, self.steps[:, first]) - held

    def _tiles(self, operand: _Operand) -> tuple[tuple[int, ...], Array]:
        """Every tile that some CTA is responsible for, a CTA's own each: the loops that tell them apart, and where they are."""
        loops = tuple(n for n in range(len(self.trips)) if n < self.walker.grid or n in operand.carriers)
        every = np.zeros((len(self.trips), prod(self.trips[n] for n in loops)), np.int64)
        every[list(loops)] = self._coordinates(tuple(self.trips[n] for n in loops))
        if self.pair is not None and {*self.pair} <= {*operand.carriers}:  # what the mask empties is nobody's
            every = every[:, np.isin(self._numbered(self.pair, every), self._numbered(self.pair, self.steps))]
        return loops, every

    def written(self, operand: _Operand) -> int:
        """Elements written of a result that is no partial sum: each CTA writes each of its tiles once."""
        return self.elements(operand, self._tiles(operand)[1])

    def summed(self, partial: _Sum) -> tuple[int, int]:
        """Elements (read, written) of a partial sum."""
        operand, kernel = partial.operand, self.walker.kernel
        if partial.summed is None:
            return self.read(operand), self.read(operand)
        leaves = any(n > partial.summed and self.trips[n] > 1 for n in operand.carriers)
        in_memory = kernel.in_memory and leaves
        loops, tiles = self._tiles(operand)
        first, last = self.visits(self._numbered(operand.carriers, self.steps))
        tile = self._numbered(loops, self.steps)[first]
        comes_back, goes_on = np.ones(len(tile), bool), np.ones(len(tile), bool)
        comes_back[np.unique(tile, return_index=True)[1]] = False
        goes_on[len(tile) - 1 - np.unique(tile[::-1], return_index=True)[1]] = False
        if in_memory:
            comes_back[:] = True
        if partial.is_output or (in_memory and not partial.is_finished_in_place):
            goes_on[:] = True
        read = self.elements(operand, self.steps[:, first[comes_back]])
        written = self.elements(operand, self.steps[:, last[goes_on]])
        if partial.is_output:
            never = np.ones(tiles.shape[1], bool)
            never[tile] = False
            written += self.elements(operand, tiles[:, never])
        return read, written

    def carried(self, operand: _Operand, loop: int) -> tuple[int, int]:
        """Elements (read, written) of a state between the steps of a recurrence, which *loop* runs over."""
        in_memory = self.walker.kernel.in_memory
        first, last = self.visits(self._numbered((*operand.carriers, *((loop,) if in_memory else ())), self.steps))
        if not in_memory:
            first = first[self.steps[loop, first] > 0]
            last = last[self.steps[loop, last] < self.trips[loop] - 1]
        return self.elements(operand, self.steps[:, first]), self.elements(operand, self.steps[:, last])

    def live(self) -> int:
        """Elements of inputs held at once: at each iteration the tile that it needs of each."""
        held = {x.name: self.tile_elements(x, self.steps) * self.uncut(x) for x in self.walker.inputs}
        return int(np.sum(list(held.values()), axis=0).max()) if held and self.count else 0

    def points(self) -> dict[str, int]:
        """Points that each Einsum executes in whole tiles; what carries no grid loop is executed by each CTA."""
        found = {}
        for e in self.walker.nodes:
            space, loops = set(e.space) - set(e.inverted), self.walker.kernel.loops
            own = [n for n, loop in enumerate(loops) if space & set(loop.indices)]
            cut = {i for n in own for i in loops[n].indices}
            tile = prod(self.rows[n].tile for n in own) * prod(self.extents[i.name] for i in space - cut)
            run = tuple(sorted({*own, *range(self.walker.grid)}))
            found[e.output.name] = tile * self._substituted(e) * self._tiles_run(run, own, e)
        return found

    def _substituted(self, einsum: Einsum) -> int:
        """Multiply-adds of an inverse: element (i, j) takes i - j of them below the diagonal; 1 for anything else."""
        if not einsum.inverted:
            return 1
        rows = np.arange(self.extents[einsum.inverted[0].name])
        return int(np.subtract.outer(rows, rows).clip(0).sum())

    def _tiles_run(self, run: tuple[int, ...], own: list[int], einsum: Einsum) -> int:
        """How many tiles of the loops *run* an Einsum is executed in: those that the mask leaves, where it spares it work."""
        if self.pair is not None:
            row, column = self.pair
            if einsum.domain is not None or (column in own and row not in own and row < self.walker.grid):
                return len(np.unique(self._numbered(run, self.steps)))
        return prod(self.trips[n] for n in run)


class Walker:
    """A schedule, ready to be walked at any numbers: what its kernels move does not depend on them, how much does."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._kernels = [KernelWalker(schedule, kernel) for kernel in schedule.kernels]
        self._moving = [name for name, t in schedule.graph.tensors.items() if t.indices]

    def walk(self, values: Values) -> Walk:
        """Run every kernel's loop nest and count, as ``derive.replay.walk`` does.

        Args:
            values: the value of each symbol, by name.

        Raises:
            UnboundError: a symbol of an extent or a tile has no value.
            DomainError: an extent or a tile is no whole number.
        """
        extents = sizes(self.schedule.graph, values)
        moves = {name: [0, 0] for name in self._moving}
        visits = 0
        points: dict[str, int] = {}
        live: dict[str, int] = {}
        for kernel in self._kernels:
            at = _At(kernel, extents, values)
            for operand in kernel.inputs:
                moves[operand.name][0] += at.read(operand)
            for operand in kernel.outputs:
                moves[operand.name][1] += at.written(operand)
            for tensor in kernel.zeroed:
                moves[tensor.name][1] += prod(extents[i.name] for i in tensor.indices)
            both = [(s.operand, at.summed(s)) for s in kernel.sums]
            both += [(operand, at.carried(operand, loop)) for operand, loop in kernel.states]
            for operand, (read, written) in both:
                moves[operand.name][0] += read
                moves[operand.name][1] += written
            visits += at.count
            points |= at.points()
            live[kernel.kernel.name] = at.live()
        return Walk({name: (read, written) for name, (read, written) in moves.items()}, visits, points, live)

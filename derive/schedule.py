"""Order and place, never values: a graph cut into kernels, each with its loop nest over tiles.

Loops are written outermost first. Grid loops come before sequential ones: each of their trips is a CTA of its own, with a
fast memory of its own. A kernel without loops is an operator that reads each operand once and writes its result once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.extremes import up
from derive.graph import Graph
from derive.mask import Mask
from derive.page_tables import as_held, tiles_of


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over the tiles of an index, or of several flattened into one (slowest first).

    Attributes:
        indices: what it runs over.
        tile: rows of one tile.
        grid: whether its trips are CTAs of their own.
    """

    indices: tuple[Index, ...]
    tile: sp.Expr
    grid: bool = False

    @property
    def extent(self) -> sp.Expr:
        """How many rows it covers in all."""
        return sp.Mul(*(i.extent for i in self.indices))

    @property
    def trips(self) -> sp.Expr:
        """How many tiles: ``ceil(extent / tile)``; the last may be ragged."""
        return self.extent if self.tile == 1 else up(self.extent / self.tile)

    def carried_by(self, tensor: Tensor) -> bool:
        """Whether moving to the next trip moves to another tile of *tensor*."""
        return any(i in tensor.indices for i in self.indices)

    def __str__(self) -> str:
        where = "grid" if self.grid else "for"
        return f"{where} {' x '.join(i.name for i in self.indices)} by {self.tile}"


@dataclass(frozen=True, slots=True)
class Residency:
    """How the cache between HBM and the SMs serves the tensors that several CTAs, or several passes, read.

    Attributes:
        tensors: the tensors it speaks of; all others stream past it and are not kept.
        sawtooth: whether CTAs of odd waves sweep the keys backwards.
        caches: how many caches hold copies of their own; CTAs are dealt to them in turn.
    """

    tensors: tuple[str, ...]
    sawtooth: bool = False
    caches: sp.Expr = sp.Integer(1)  # noqa: RUF009  (SymPy numbers are immutable)


@dataclass(frozen=True)
class Kernel:
    """Einsums that run in one launch.

    Attributes:
        einsums: names of what they define, in order.
        loops: its loop nest, grid loops first.
        skips_masked: tiles that the mask empties are never loaded.
        in_memory: partial sums live in memory throughout, as in FlashAttention-1's Algorithm 1: read and written at
            every visit, the first included; so do the states of a recurrence, read and written at every trip of its loop.
        residency: what the cache keeps, where that is modelled.
        atomic: sums over a grid loop lie in memory, zero at first, and CTAs add their shares to them as they go: each share is
            a read and a write of memory, in whatever order they come.
    """

    einsums: tuple[str, ...]
    loops: tuple[Loop, ...] = ()
    skips_masked: bool = False
    in_memory: bool = False
    residency: Residency | None = None
    atomic: bool = False

    def __post_init__(self) -> None:
        grid = [loop.grid for loop in self.loops]
        if grid != sorted(grid, reverse=True):
            raise IllFormedError(f"kernel {self.name}: grid loops come before sequential ones; got {self.nest}")
        seen: set[str] = set()
        for index in (i.name for loop in self.loops for i in loop.indices):
            if index in seen:
                raise IllFormedError(f"kernel {self.name}: index {index} has two loops; merge them into one")
            seen.add(index)

    @property
    def name(self) -> str:
        """What it computes, e.g. ``S..O``."""
        return self.einsums[0] if len(self.einsums) == 1 else f"{self.einsums[0]}..{self.einsums[-1]}"

    @property
    def nest(self) -> str:
        """Its loop nest on one line."""
        return ", ".join(map(str, self.loops)) or "whole operands"

    @property
    def grid(self) -> tuple[Loop, ...]:
        """Its grid loops."""
        return tuple(loop for loop in self.loops if loop.grid)

    @property
    def sequential(self) -> tuple[Loop, ...]:
        """The loops of one CTA."""
        return tuple(loop for loop in self.loops if not loop.grid)

    @property
    def ctas(self) -> sp.Expr:
        """How many CTAs it launches."""
        return sp.Mul(*(loop.trips for loop in self.grid))

    def loop_of(self, index: str) -> Loop | None:
        """The loop that runs over *index*, if any."""
        return next((loop for loop in self.loops if index in {i.name for i in loop.indices}), None)

    def with_(self, **changes: object) -> Kernel:
        """A copy with *changes*."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Schedule:
    """A graph cut into kernels.

    Raises:
        IllFormedError: an Einsum is in no kernel or in two, a kernel reads what only a later one writes, a grid loop runs
            over what some Einsum does not carry, a loop flattens indices of which some tensor carries only some, the steps of
            a recurrence are spread over kernels, CTAs or heads, a loop cuts what is read under another name or what is
            inverted, or a selection does not find whole in memory what it selects from.
    """

    graph: Graph
    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        placed = [name for kernel in self.kernels for name in kernel.einsums]
        wanted = [e.output.name for e in self.graph.einsums]
        if sorted(placed) != sorted(wanted):
            raise IllFormedError(f"kernels compute {placed}, the graph needs each of {wanted} exactly once")
        done: set[str] = {t.name for t in self.graph.inputs}
        for kernel in self.kernels:
            self._check_recurrences(kernel)
            self._check_names(kernel)
            self._check_selections(kernel)
            for name in kernel.einsums:
                behind = self.graph.producers[name].previous is not None
                for tensor in self.graph.producers[name].inputs:
                    if tensor.indices and tensor.name not in done and not behind:
                        raise IllFormedError(f"kernel {kernel.name} reads {tensor.name} before it is written")
                done.add(name)
            for loop in kernel.grid:
                for name in kernel.einsums:
                    if not self.is_independent(name, kernel, loop.indices) and not self.is_added_up(name, kernel, loop):
                        raise IllFormedError(
                            f"kernel {kernel.name}: {name} does not carry the grid loop {loop}, so its CTAs would meet in it"
                        )
            for loop in kernel.loops:
                for tensor in self.tensors_of(kernel):
                    carried = [i in tensor.indices for i in loop.indices]
                    if any(carried) and not all(carried):
                        raise IllFormedError(f"kernel {kernel.name}: {tensor} carries only part of the loop {loop}")

    def _check_recurrences(self, kernel: Kernel) -> None:
        for run in self.graph.recurrences:
            inside = [e.output.name in kernel.einsums for e in run.einsums]
            if any(inside) and not all(inside):
                raise IllFormedError(
                    f"kernel {kernel.name}: it runs part of the recurrence along {run.index}; run all of it"
                )
            loop = kernel.loop_of(run.index)
            if any(inside) and loop is not None and (loop.grid or len(loop.indices) > 1):
                raise IllFormedError(
                    f"kernel {kernel.name}: its recurrence runs along {run.index} in order, one sequential loop; got {loop}"
                )

    def _check_names(self, kernel: Kernel) -> None:
        """No loop may cut what is read under another name: the tile at hand would be another one."""
        known: dict[str, Tensor] = {}
        for e in self.nodes(kernel):
            changed = {*e.renamed, *e.renamed.values()}
            for t in e.inputs:
                first = known.setdefault(t.name, t)
                changed |= {
                    i.name for pair in zip(first.indices, t.indices, strict=True) if pair[0] != pair[1] for i in pair
                }
            for name in sorted(changed):
                if (loop := kernel.loop_of(name)) is not None:
                    raise IllFormedError(
                        f"kernel {kernel.name}: {e} reads a tensor under two names, whole; {loop} would cut it"
                    )
            for index in e.inverted:
                if (loop := kernel.loop_of(index.name)) is not None:
                    raise IllFormedError(f"kernel {kernel.name}: {e} inverts a whole square; {loop} would cut it")

    def _check_selections(self, kernel: Kernel) -> None:
        """What is selected from must be there whole: any row of it may be the next one."""
        for e in self.nodes(kernel):
            if e.selected is None:
                continue
            cut = {i.name for t in e.inputs for i in t.indices if i not in e.output.indices}
            cut |= {i.name for i in e.output.indices if i not in e.space}
            for name in sorted(cut):
                if (loop := kernel.loop_of(name)) is not None:
                    raise IllFormedError(
                        f"kernel {kernel.name}: {e} selects along {e.selected.name}; {loop} would cut it"
                    )
            if e.map is Map.GATHER and e.inputs[0].name in kernel.einsums:
                raise IllFormedError(
                    f"kernel {kernel.name}: {e} gathers rows of {e.inputs[0].name}, which must be in memory before; "
                    "another kernel makes it"
                )

    def mask_of(self, kernel: Kernel) -> Mask | None:
        """The mask whose pairs *kernel* runs over tile by tile; where it does not, the graph's."""
        looped = {i.name for loop in kernel.loops for i in loop.indices}
        return next((m for m in self.graph.masks if {m.row, m.column} <= looped), self.graph.mask)

    def gathers_of(self, kernel: Kernel) -> dict[str, tuple[Tensor, ...]]:
        """What *kernel* makes of rows that it gathers, by the name of what it gathers them from."""
        found: dict[str, tuple[Tensor, ...]] = {}
        for e in self.nodes(kernel):
            if e.map is Map.GATHER:
                found[e.inputs[0].name] = (*found.get(e.inputs[0].name, ()), e.output)
        return found

    def selecting_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """What *kernel* gathers rows from, and their positions; of rows that lie in pages, whose order is known, the table."""
        return tuple(t for e in self.nodes(kernel) if e.map is Map.GATHER for t in e.inputs[e.paging is not None :])

    def is_gathered_only(self, tensor: Tensor, kernel: Kernel) -> bool:
        """Whether *kernel* reads rows of *tensor* at positions that it is given, and nothing else of it."""
        readers = [e for e in self.nodes(kernel) if tensor.name in {t.name for t in e.inputs}]
        return bool(readers) and all(e.map is Map.GATHER and e.inputs[1].name != tensor.name for e in readers)

    def staged_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """The tensors whose tiles *kernel* brings in: what it reads, or of it the rows that it gathers."""
        read = (t for t in self.inputs_of(kernel) if not self.is_gathered_only(t, kernel))
        found = dict.fromkeys(as_held(t, self.nodes(kernel), tiles_of(kernel.loops)) for t in read)
        return (*found, *(row for rows in self.gathers_of(kernel).values() for row in rows))

    def is_independent(self, name: str, kernel: Kernel, indices: tuple[Index, ...]) -> bool:
        """Whether CTAs that run over *indices* can each make *name* by themselves.

        Their results are disjoint where it carries an index; what stays in the kernel and does not depend on the index
        is made again by each.
        """
        e = self.graph.producers[name]
        if any(i in e.output.indices for i in indices):
            return True
        return not self._leaves(name, kernel) and not any(i in e.reduced for i in indices)

    def is_added_up(self, name: str, kernel: Kernel, loop: Loop) -> bool:
        """Whether *name* is a plain sum over a grid loop that CTAs add their shares to, and that no CTA reads."""
        e = self.graph.producers[name]
        plain = e.reduce is Reduce.SUM and e.rescale is None and all(i in e.reduced for i in loop.indices)
        waiting = any(reader.output.name in kernel.einsums for reader in self.graph.readers.get(name, ()))
        return kernel.atomic and loop.grid and plain and not waiting

    def added_up_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """The sums in memory that CTAs of *kernel* add their shares to."""
        outputs = self.outputs_of(kernel)
        return tuple(t for t in outputs if any(self.is_added_up(t.name, kernel, loop) for loop in kernel.grid))

    def nodes(self, kernel: Kernel) -> tuple[Einsum, ...]:
        """The Einsums of *kernel*, in order."""
        return tuple(self.graph.producers[name] for name in kernel.einsums)

    def tensors_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """Every tensor that *kernel* touches, scalars aside."""
        found: dict[str, Tensor] = {}
        for e in self.nodes(kernel):
            found |= {t.name: t for t in (*e.inputs, e.output) if t.indices}
        return tuple(found.values())

    def states_of(self, kernel: Kernel) -> tuple[tuple[Tensor, Loop], ...]:
        """What *kernel* carries from one trip of a recurrence's loop to the next: the state of one step, and that loop."""
        found = []
        for e in self.nodes(kernel):
            loop = kernel.loop_of(e.previous) if e.previous is not None else None
            if loop is not None:
                one_step = tuple(i for i in e.output.indices if i.name != e.previous)
                found.append((replace(e.output, indices=one_step), loop))
        return tuple(found)

    def inputs_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """What *kernel* reads from memory: tensors that it does not itself define."""
        return tuple(t for t in self.tensors_of(kernel) if t.name not in kernel.einsums)

    def outputs_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """What *kernel* leaves in memory: graph outputs and what another kernel reads."""
        return tuple(t for t in self.tensors_of(kernel) if t.name in kernel.einsums and self._leaves(t.name, kernel))

    def internals_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """What *kernel* defines and keeps to itself."""
        return tuple(
            t for t in self.tensors_of(kernel) if t.name in kernel.einsums and not self._leaves(t.name, kernel)
        )

    def _leaves(self, name: str, kernel: Kernel) -> bool:
        readers = self.graph.readers.get(name, ())
        return name in self.graph.outputs or any(e.output.name not in kernel.einsums for e in readers)

    @cached_property
    def kernel_of(self) -> dict[str, Kernel]:
        """The kernel that defines each tensor."""
        return {name: kernel for kernel in self.kernels for name in kernel.einsums}

    def moving_states_of(self, kernel: Kernel) -> tuple[Tensor, ...]:
        """States of one step that leave the SM: they live in memory, or a loop that cuts them stands inside the steps."""
        return tuple(
            state
            for state, steps in self.states_of(kernel)
            if kernel.in_memory or any(x.carried_by(state) for x in kernel.loops[kernel.loops.index(steps) + 1 :])
        )

    def replace(self, old: tuple[Kernel, ...], new: Kernel) -> Schedule:
        """The schedule with *new* where the first of *old* stood."""
        first = self.kernels.index(old[0])
        kernels = [k for k in self.kernels if k not in old]
        kernels.insert(first, new)
        return Schedule(self.graph, tuple(kernels))

    def __str__(self) -> str:
        return "\n".join(f"kernel {k.name}: {k.nest}" for k in self.kernels)


def lift(graph: Graph) -> Schedule:
    """One kernel an Einsum, untiled: the ``op-by-op`` grain, where every intermediate crosses memory.

    A recurrence is one operator: none of its Einsums can finish before another begins.
    """
    runs = {e: tuple(x.output.name for x in run.einsums) for run in graph.recurrences for e in run.einsums}
    names = dict.fromkeys(runs.get(e, (e.output.name,)) for e in graph.einsums)
    return Schedule(graph, tuple(map(Kernel, names)))

"""What must be on chip at once in one CTA, and what must be in memory at once over a whole schedule."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import sympy as sp

from derive.cost import Cost, Unit
from derive.einsum import Index, Tensor
from derive.extremes import greatest
from derive.schedule import Kernel, Schedule
from derive.symbols import symbol


class Place(Enum):
    """Where a kernel keeps its tiles."""

    SHARED = "shared memory"
    """Tiles of what it reads: they are staged there for the matrix pipe."""
    REGISTERS = "registers"
    """Tiles of what it makes."""


def tile_size(kernel: Kernel, tensor: Tensor) -> sp.Expr:
    """Elements of one tile of *tensor*: tiled indices by their tile, the others whole."""
    return tile_points(kernel, tensor.indices)


def tile_points(kernel: Kernel, indices: Iterable[Index]) -> sp.Expr:
    """Points of one tile over *indices*: tiled ones by their tile, the others whole."""
    size: sp.Expr = sp.Integer(1)
    pending = dict.fromkeys(indices)
    for loop in kernel.loops:
        if any(i in pending for i in loop.indices):
            size *= loop.tile
            for i in loop.indices:
                pending.pop(i, None)
    return size * sp.Mul(*(i.extent for i in pending))


def tiles_by_place(schedule: Schedule, kernel: Kernel) -> dict[Place, tuple[Tensor, ...]]:
    """Which tensors' tiles a CTA of *kernel* holds, and where; gathered rows are staged as what is read."""
    staged = schedule.staged_of(kernel)
    made = (*schedule.internals_of(kernel), *schedule.outputs_of(kernel))
    return {Place.SHARED: staged, Place.REGISTERS: tuple(t for t in made if t not in staged)}


def kernel_footprint(schedule: Schedule, kernel: Kernel, *places: Place) -> Cost:
    """Elements live at once in a CTA of *kernel*, one buffer a tensor; both places unless *places* says which."""
    held = tiles_by_place(schedule, kernel)
    chosen = [t for place in (places or tuple(Place)) for t in held[place]]
    return Cost(sp.Add(*(tile_size(kernel, t) for t in chosen)), Unit.ELEMENT)


def kernel_footprint_bytes(schedule: Schedule, kernel: Kernel, place: Place) -> Cost:
    """The same for one place in bytes: shared memory by each tensor's width, registers by the accumulator's."""
    accumulator = symbol("b_acc")
    total = sp.Integer(0)
    for tensor in tiles_by_place(schedule, kernel)[place]:
        total += tile_size(kernel, tensor) * (tensor.width if place is Place.SHARED else accumulator)
    return Cost(total, Unit.BYTE)


def tiled_kernels(schedule: Schedule) -> tuple[Kernel, ...]:
    """Kernels with a tile size of their own to choose; an untiled operator's tiles are its library's affair."""
    return tuple(k for k in schedule.kernels if any(loop.tile.free_symbols or loop.tile > 1 for loop in k.loops))


def nested_kernels(schedule: Schedule) -> tuple[Kernel, ...]:
    """Kernels with a loop nest of their own, tiles to choose or not: what a CTA of theirs holds follows from it."""
    return tuple(k for k in schedule.kernels if k.loops)


def footprint(schedule: Schedule) -> Cost | None:
    """Shared-memory bytes of the largest CTA; ``None`` when no kernel has a loop nest of its own."""
    found = [kernel_footprint_bytes(schedule, k, Place.SHARED).amount for k in nested_kernels(schedule)]
    return Cost(greatest(found), Unit.BYTE) if found else None


def memory_peak(schedule: Schedule) -> Cost:
    """Bytes of HBM that are live at once at the worst kernel: inputs and outputs always, others from writer to last reader.

    Outputs count from the kernel that writes them on, partial sums that leave the SM while their kernel runs.
    """
    graph = schedule.graph
    position = {name: n for n, kernel in enumerate(schedule.kernels) for name in kernel.einsums}
    stored = {t.name: t for k in schedule.kernels for t in schedule.outputs_of(k)}
    last_read = {
        name: max((position[e.output.name] for e in graph.readers.get(name, ())), default=position[name])
        for name in stored
    }
    always = sp.Add(*(t.size * t.width for t in graph.inputs))
    peaks = []
    for n, kernel in enumerate(schedule.kernels):
        live = [t.size * t.width for t in spilled(schedule, kernel)]
        live += [
            t.size * t.width
            for name, t in stored.items()
            if position[name] <= n and (name in graph.outputs or n <= last_read[name])
        ]
        peaks.append(always + sp.Add(*live))
    return Cost(greatest(peaks), Unit.BYTE)


def spilled(schedule: Schedule, kernel: Kernel) -> tuple[Tensor, ...]:
    """Partial sums of *kernel* that need room in memory: a loop that carries them stands inside one they are summed over.

    One that is finished in place, as U_O is by O, has the room of its result, where that is as wide. A state that leaves the
    SM between two steps of a recurrence needs room too: that of one step.
    """
    found = list(schedule.moving_states_of(kernel))
    for tensor in schedule.internals_of(kernel):
        results = (e.output for e in schedule.graph.readers.get(tensor.name, ()) if e.output.name in kernel.einsums)
        in_place = any(
            t in schedule.outputs_of(kernel) and (t.indices, t.width) == (tensor.indices, tensor.width) for t in results
        )
        if is_put_aside(schedule, kernel, tensor) and not in_place:
            found.append(tensor)
    return tuple(found)


def is_put_aside(schedule: Schedule, kernel: Kernel, tensor: Tensor) -> bool:
    """Whether a sum leaves the SM unfinished: a loop of *kernel* that carries it stands inside one that it is summed over."""
    reduced = schedule.graph.producers[tensor.name].reduced
    loops = kernel.sequential
    summing = [n for n, x in enumerate(loops) if any(i in reduced for i in x.indices)]
    carrying = [n for n, x in enumerate(loops) if x.carried_by(tensor)]
    return bool(summing and carrying) and max(carrying) > min(summing)

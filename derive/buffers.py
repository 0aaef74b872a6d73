"""Which tiles of a kernel may share one piece of fast memory, and what it then needs at once.

A result may take the place of an operand that nothing reads afterwards, point by point: the scaled Q that of Q, the
probabilities that of the scores, O that of its unnormalised sum. The papers count tiles so: FlashAttention's M/(4 d) rows are
tiles of Q, K, V and O alone.

Source: Dao et al. 2022, arXiv:2205.14135, algorithm 1, line 1.
"""

from __future__ import annotations

import sympy as sp

from derive.cost import Cost, Unit
from derive.einsum import Index, Tensor
from derive.footprint import Place, tile_size, tiles_by_place
from derive.page_tables import as_held, tiles_of
from derive.schedule import Kernel, Schedule
from derive.symbols import symbol

Buffer = tuple[Tensor, ...]
"""Tensors whose tiles stand in one place, one after another."""


def buffers(schedule: Schedule, kernel: Kernel) -> tuple[Buffer, ...]:
    """The tiles of a CTA of *kernel*, those that take each other's place together."""
    taken: dict[str, str] = {}
    nodes = schedule.nodes(kernel)
    for n, einsum in enumerate(nodes):
        later = {t.name for e in nodes[n + 1 :] for t in e.inputs}
        for operand in einsum.inputs:
            same = held_indices(kernel, operand) == held_indices(kernel, einsum.output) and not einsum.reduced
            if same and operand.indices and operand.name not in later and operand.name not in taken:
                taken[operand.name] = einsum.output.name
                break
    touched = (t for t in schedule.tensors_of(kernel) if not schedule.is_gathered_only(t, kernel))
    tensors = {t.name: as_held(t, nodes, tiles_of(kernel.loops)) for t in touched}
    found = []
    for name in (name for name in tensors if name not in taken.values()):
        chain = [name]
        while (successor := taken.get(chain[-1])) is not None:
            chain.append(successor)
        found.append(tuple(tensors[link] for link in chain))
    return tuple(found)


def held_indices(kernel: Kernel, tensor: Tensor) -> tuple[Index, ...]:
    """The indices along which a tile of *tensor* has more than one row."""
    single = {i for loop in kernel.loops if loop.tile == 1 for i in loop.indices}
    return tuple(i for i in tensor.indices if i not in single)


def working_set(schedule: Schedule, kernel: Kernel) -> Cost:
    """Elements of fast memory that a CTA of *kernel* needs at once, each buffer counted once."""
    return Cost(sp.Add(*(tile_size(kernel, buffer[0]) for buffer in buffers(schedule, kernel))), Unit.ELEMENT)


def register_bytes(schedule: Schedule, kernel: Kernel) -> Cost:
    """Bytes of the buffers that hold what the kernel makes, in the accumulator's width; operands in shared memory are not."""
    made = {t.name for t in tiles_by_place(schedule, kernel)[Place.REGISTERS]}
    size = sp.Add(*(tile_size(kernel, x[0]) for x in buffers(schedule, kernel) if all(t.name in made for t in x)))
    return Cost(size * symbol("b_acc"), Unit.BYTE)

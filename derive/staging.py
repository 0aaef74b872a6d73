"""What a real kernel stages in shared memory, and what its warp groups read from there into registers.

An operand that changes with every trip of a CTA's innermost loop is loaded while the trip before still computes: it needs as
many buffers as the pipeline has stages. One that stays during that loop needs a single buffer. Both follow from the loops. A
loop that happens to have one trip still counts: a kernel's buffers are laid out before its lengths are known.

Source: Shah et al. 2024, arXiv:2407.08608, section 3.2 (the pipeline of K and V tiles).
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.buffers import buffers
from derive.cost import Cost, Unit
from derive.einsum import Tensor
from derive.flops import is_contraction
from derive.footprint import tile_size
from derive.schedule import Kernel, Schedule
from derive.traffic import kernel_traffic


def streams(kernel: Kernel, tensor: Tensor) -> bool:
    """Whether the innermost sequential loop of *kernel* brings in another tile of *tensor* at every trip."""
    return bool(kernel.sequential) and kernel.sequential[-1].carried_by(tensor)


def staged_bytes(schedule: Schedule, kernel: Kernel, stages: int, *, results: bool = False) -> Cost:
    """Bytes of shared memory that a CTA of *kernel* needs at once.

    Args:
        schedule: what the kernel belongs to.
        kernel: a tiled kernel.
        stages: buffers of an operand that streams; an operand that stays has one.
        results: whether what the kernel makes itself is staged too where a matrix product reads it, as P is when the second
            product does not take it from registers.
    """
    total = sp.Integer(0)
    for tensor in schedule.staged_of(kernel):
        total += (stages if streams(kernel, tensor) else 1) * tile_size(kernel, tensor) * tensor.width
    if results:
        total += sp.Add(*(tile_size(kernel, t) * t.width for t in _made_for_products(schedule, kernel)))
    return Cost(total, Unit.BYTE)


def _made_for_products(schedule: Schedule, kernel: Kernel) -> tuple[Tensor, ...]:
    """What *kernel* makes and one of its own matrix products reads, unless it stands where an operand stood."""
    products = [e for e in schedule.nodes(kernel) if is_contraction(e)]
    found = {t.name: t for e in products for t in e.inputs if t.name in kernel.einsums}
    staged = {t.name for t in schedule.staged_of(kernel)}
    in_place = {t.name for chain in buffers(schedule, kernel) if chain[0].name in staged for t in chain}
    return tuple(t for name, t in found.items() if name not in in_place)


def register_reads(schedule: Schedule, kernel: Kernel, rows: sp.Symbol) -> Cost:
    """Bytes of *kernel*'s staged operands that cross from shared memory into registers.

    The re-read rule one level further in. The warp groups share the rows of a CTA's tile and each has registers of its own, so
    the loop over rows, and all loops outside it, are to registers what the grid is to shared memory. The result is written in
    *rows*, which there stands for the rows that one warp group holds; under a mask a group skips what its own rows do not see.
    What a group holds, such as its rows of Q, is read once: instructions that take it from shared memory each time are counted
    in ``derive.shared_memory``.
    """
    last = max((n for n, loop in enumerate(kernel.loops) if loop.tile == rows), default=len(kernel.grid) - 1)
    inner = replace(kernel, loops=tuple(replace(x, grid=x.grid or n <= last) for n, x in enumerate(kernel.loops)))
    reads = kernel_traffic(schedule, inner).by_tensor
    return Cost(sp.Add(*(reads[t.name].read * t.width for t in schedule.inputs_of(kernel))), Unit.BYTE)

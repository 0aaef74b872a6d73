"""Elements that a kernel converts: operands of a matrix product that reach an SM in a narrower type than it multiplies.

The matrix units multiply two operands of one type. A tensor of a narrower type, such as an fp8 cache beside bf16 queries, is
converted element by element each time it is brought into an SM; what a kernel makes on chip is not counted, since it is
written in the wider type.

Source: FlashMLA, docs/20250929-hopper-fp8-sparse-deep-dive.md (dequantisation on the vector units, beside the matrix units).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy as sp

from derive.cost import Cost, Unit
from derive.einsum import Einsum, Map, Tensor
from derive.exact import Number, value
from derive.flops import is_contraction
from derive.schedule import Kernel, Schedule
from derive.traffic import kernel_traffic


def converted(
    schedule: Schedule, kernel: Kernel, wide: Number | Callable[[Einsum], Number], widths: Mapping[str, Number]
) -> Cost:
    """Operations of *kernel* that convert, one an element brought in.

    Args:
        schedule: the schedule that *kernel* is part of.
        kernel: which kernel.
        wide: bytes an element of the type that its matrix products multiply, or that each of them does.
        widths: bytes an element by width symbol.

    Raises:
        UnboundError: a width has no value.
    """
    moves = kernel_traffic(schedule, kernel).by_tensor
    each = wide if callable(wide) else lambda _: wide
    narrow = [
        t
        for t, readers in _multiplied(schedule, kernel).items()
        if value(t.width, widths) < max(each(e) for e in readers)
    ]
    return Cost(sp.Add(*(moves[t.name].read for t in narrow)), Unit.OPERATION)


def multiplied(schedule: Schedule, kernel: Kernel) -> tuple[Tensor, ...]:
    """What *kernel* reads from memory and multiplies in a matrix product, as it is or after pointwise operations."""
    return tuple(_multiplied(schedule, kernel))


def _multiplied(schedule: Schedule, kernel: Kernel) -> dict[Tensor, tuple[Einsum, ...]]:
    """The same, each with the products that multiply it."""
    found: dict[str, tuple[Einsum, ...]] = {}
    read = {t.name for t in schedule.inputs_of(kernel)}
    frontier = [(t, e) for e in schedule.nodes(kernel) if is_contraction(e) for t in e.inputs]
    while frontier:
        tensor, product = frontier.pop()
        if tensor.name in read:
            found[tensor.name] = (*found.get(tensor.name, ()), product)
            continue
        made = schedule.graph.producers.get(tensor.name)
        if made is not None and is_brought_in(schedule, read, tensor):
            operands = made.inputs[:1] if made.map is Map.GATHER else made.inputs  # positions are not multiplied
            frontier += [(t, product) for t in operands if t.indices]
    return {t: found[t.name] for t in schedule.inputs_of(kernel) if t.name in found}


def is_brought_in(schedule: Schedule, read: set[str], tensor: Tensor) -> bool:
    """Whether *tensor* is pointwise in what the kernel reads, as the scaled query is; no exponential of scores, no state."""
    if tensor.name in read:
        return True
    made = schedule.graph.producers.get(tensor.name)
    if made is None or made.reduced or made.previous is not None:
        return False
    return all(is_brought_in(schedule, read, t) for t in made.inputs if t.indices)

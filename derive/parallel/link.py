r"""What crosses the links of a device, what it holds, and the block whose work hides the transfer.

A schedule of one kernel is read one level up: its grid loops deal work to devices, its sequential loops stream tiles from
other devices. For a tensor T that lies at home cut along one index in R parts

    link(T) = moved(T) / R - |T| * prod_i overlap_i

where moved(T) is the re-read rule's count over all devices (``derive.traffic``), and overlap_i the share of index i that a
device both needs and holds: 1/R where both cut it the same way, else the product of the two shares. What each device reads
of T and holds already crosses nothing.

Source: Liu et al. 2023, arXiv:2310.01889, section 3 (ring); Jacobs et al. 2023, arXiv:2309.14509 (all-to-all over heads);
Shoeybi et al. 2019, arXiv:1909.08053, section 3 (heads).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from derive.cost import Move, Moves, Unit
from derive.einsum import Index, Tensor
from derive.errors import PreconditionError
from derive.flops import FLOPS_PER_MULTIPLY_ADD, is_contraction
from derive.footprint import tile_size
from derive.graph import Graph
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B, B_link, F, R
from derive.traffic import kernel_traffic

BUFFERS = 2
"""Tiles of a tensor that streams in while another tile of it is worked on."""


def heads(graph: Graph, row: str = "q") -> tuple[Index, ...]:
    """Head indices of the result, those before the queries but for the batch; outermost first.

    Raises:
        PreconditionError: the result has none.
    """
    found: list[Index] = []
    for index in graph.tensors[graph.outputs[0]].indices:
        if index.name == row:
            break
        if index.extent != B:
            found.append(index)
    if not found:
        raise PreconditionError(f"{graph.tensors[graph.outputs[0]]} has no heads, so they cannot be dealt to devices")
    return tuple(found)


def head_tiles(graph: Graph) -> tuple[tuple[Index, sp.Expr], ...]:
    """A tile for each head index, such that R tiles cover all heads: the outermost index is cut first.

    Key/value heads come first in a group's indices; where there are fewer than devices, each is left whole and several
    devices share its query heads.
    """
    found, left = [], R
    indices = heads(graph)
    for index in indices:
        parts = left if index == indices[-1] else sp.Min(index.extent, left)
        found.append((index, index.extent / parts))
        left = left / parts
    return tuple(found)


@dataclass(frozen=True)
class Device:
    """One of R devices that run *schedule* together.

    Attributes:
        schedule: one kernel whose grid is dealt to devices; parts divide, so that all devices do alike.
        home: along the first of these indices that it carries, a tensor lies cut in R parts before and after; one that
            carries none lies where it is used, as do all when there are none.
    """

    schedule: Schedule
    home: tuple[str, ...] = ()

    @property
    def kernel(self) -> Kernel:
        """The one kernel."""
        (kernel,) = self.schedule.kernels
        return kernel

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """What lies in a device's memory: inputs and results."""
        return (*self.schedule.inputs_of(self.kernel), *self.schedule.outputs_of(self.kernel))

    @property
    def widths(self) -> dict[str, sp.Expr]:
        """Bytes an element by tensor."""
        return {t.name: t.width for t in self.tensors}

    # --- links --------------------------------------------------------------------------------------------------------

    @cached_property
    def touched(self) -> Moves:
        """Elements that one device reads and writes, wherever they lie: the re-read rule over its loops."""
        moved = kernel_traffic(self.schedule, self.kernel)
        return Moves({n: Move(_divided(m.read), _divided(m.write)) for n, m in moved.by_tensor.items()}, Unit.ELEMENT)

    @cached_property
    def link(self) -> Moves:
        """Elements that one device receives (read) and sends (write) for the work, by tensor."""
        found = {}
        for tensor in self.tensors:
            move = self.touched.by_tensor[tensor.name]
            local = self._local(tensor)
            crossing = Move(*(sp.factor(x - local) if x != 0 else x for x in (move.read, move.write)))
            if crossing != Move():
                found[tensor.name] = crossing
        return Moves(found, Unit.ELEMENT)

    def _local(self, tensor: Tensor) -> sp.Expr:
        """Elements of *tensor* that a device both needs and holds."""
        names = {i.name for i in tensor.indices}
        cut = next((name for name in self.home if name in names), None)
        if cut is None:
            move = self.touched.by_tensor[tensor.name]  # it lies where it is used
            return move.read + move.write
        share: sp.Expr = sp.Integer(1)
        for index in tensor.indices:
            loop = next((x for x in self.kernel.grid if index in x.indices), None)
            needed = sp.Integer(1) if loop is None else loop.tile / index.extent
            held = 1 / R if index.name == cut else sp.Integer(1)
            share *= held if needed == held else needed * held
        return tensor.size * share

    @property
    def streamed(self) -> tuple[Tensor, ...]:
        """What arrives tile by tile while the device works."""
        return tuple(
            t
            for t in self.tensors
            if t.name in self.link.by_tensor and any(x.carried_by(t) for x in self.kernel.sequential)
        )

    @property
    def steps(self) -> sp.Expr:
        """Tiles that a device works on one after another, its own included."""
        return sp.Mul(*(_whole(loop.trips) for loop in self.kernel.sequential))

    @property
    def step_bytes(self) -> sp.Expr:
        """Bytes that arrive in one step: a tile of everything that streams."""
        return sp.Add(*(tile_size(self.kernel, t) * t.width for t in self.streamed))

    # --- memory -------------------------------------------------------------------------------------------------------

    def part(self, tensor: Tensor) -> sp.Expr:
        """Elements of *tensor* on one device, buffers aside: a shard of what streams, all it works with of the rest."""
        if tensor in self.streamed:
            return tile_size(self.kernel, tensor)
        return sp.Mul(*(_tile_of(self.kernel.grid, i) for i in tensor.indices))

    @property
    def memory(self) -> sp.Expr:
        """Bytes of inputs and results on a device, a second buffer included where one fills while another is worked on."""
        found = ((BUFFERS if t in self.streamed else 1) * self.part(t) * t.width for t in self.tensors)
        return sp.factor(sp.Add(*found))

    def stored(self, tensor: Tensor) -> sp.Expr:
        """Elements of *tensor* on all devices together; above ``tensor.size`` where some lie on several."""
        return sp.factor(R * self.part(tensor))

    # --- work ---------------------------------------------------------------------------------------------------------

    @cached_property
    def flop_a_pair(self) -> sp.Expr:
        """Matrix FLOP that a pair of a query and a key costs on a device, over all heads that it has."""
        mask_names = {"q", "k"}
        total = sp.Integer(0)
        for e in self.schedule.graph.einsums:
            if is_contraction(e) and mask_names <= {i.name for i in e.space}:
                rest = [i for i in e.space if i.name not in mask_names]
                total += FLOPS_PER_MULTIPLY_ADD * sp.Mul(*(_tile_of(self.kernel.grid, i) for i in rest))
        return total

    @property
    def beside_pairs(self) -> tuple[str, ...]:
        """Matrix products that no pair of a query and a key pays for, such as keys made of a latent."""
        products = (e for e in self.schedule.graph.einsums if is_contraction(e))
        return tuple(e.output.name for e in products if not {"q", "k"} <= {i.name for i in e.space})

    def hiding_block(self, pairs: sp.Expr | None, alike: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr | None:
        """Queries a device from which the work of a step hides the transfer of the next.

        ``flop_a_pair pairs / F >= step_bytes / B_link``, where the pairs of a step grow with queries and keys alike.

        Args:
            pairs: pairs of the busiest device at a step; ``None`` where they have no closed form.
            alike: lengths that are one, as *pairs* writes them.

        Returns:
            The block; ``None`` where nothing streams, or it depends on the block itself, as under a window.
        """
        if pairs is None or not self.streamed:
            return None
        queries = next(loop for loop in self.kernel.grid if loop.indices[0].name == "q")
        slope = sp.cancel(self.flop_a_pair * pairs / (self.step_bytes * queries.tile).subs(alike))
        if slope.free_symbols & {queries.extent.subs(alike), R}:
            return None
        return sp.factor(F / (B_link * slope))


def _tile_of(loops: tuple[Loop, ...], index: Index) -> sp.Expr:
    """What one device has of *index*."""
    return next((loop.tile for loop in loops if index in loop.indices), index.extent)


def _divided(amount: sp.Expr) -> sp.Expr:
    return sp.cancel(_whole(amount) / R)


def _whole(amount: sp.Expr) -> sp.Expr:
    """*amount* where parts divide: nothing is rounded, and there is more than one part."""
    return amount.replace(sp.ceiling, lambda x: x)

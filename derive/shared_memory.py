"""Bytes that cross shared memory while a kernel multiplies: what matrix instructions read, and what is staged through it.

A product of an m x k by a k x n tile runs in instructions of at most m_I rows and n_I columns. Each reads its operands anew, so

    bytes  =  b_A m k ceil(n / n_I)  +  b_B k n ceil(m / m_I).

What a kernel brings in, as it is or after pointwise operations, lies in shared memory. What it makes of products, such as P,
can stay where the accumulator left it, in registers or tensor memory: as the operand with the rows it crosses nothing. It lies
there in one orientation, the one that most products can take it in; for any other it is written to shared memory first, as dS
is for dQ = dS K beside dK = dS^T Q. A sum that leaves the SM unfinished is written there at each trip, and read on its way out.

Whole tiles are counted, as in the FLOP that a schedule runs. Not counted: the loads that fill shared memory and results that
leave once, which are SM-side bytes already, and whatever is not multiplied.

Source: Zadouri et al. 2026, FlashAttention-4, arXiv:2603.05451, sections 3.1.1 and 3.2.1 (tables 1 and 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from derive.conversion import is_brought_in
from derive.cost import Move, Moves, Unit, added
from derive.einsum import Einsum, Index, Tensor
from derive.extremes import up
from derive.flops import FLOPS_PER_MULTIPLY_ADD, is_contraction, products
from derive.footprint import is_put_aside, tile_points, tile_size
from derive.schedule import Kernel, Schedule
from derive.symbols import m_I, n_I


def shared_traffic(schedule: Schedule) -> Moves | None:
    """Bytes read and written in shared memory by each tensor; ``None`` where a library multiplies in tiles of its own."""
    parts = [kernel_shared_traffic(schedule, kernel) for kernel in schedule.kernels]
    known = [part for part in parts if part is not None]
    return added(known, Unit.BYTE) if len(known) == len(parts) else None


def kernel_shared_traffic(schedule: Schedule, kernel: Kernel) -> Moves | None:
    """The same for one kernel."""
    if not kernel.loops:
        return None if any(is_contraction(e) for e in schedule.nodes(kernel)) else Moves({}, Unit.BYTE)
    kept = _Kept(schedule, kernel)
    parts = []
    for e, run in products(schedule, kernel):
        tiles = run.amount / (FLOPS_PER_MULTIPLY_ADD * tile_points(kernel, e.space))
        parts += [Moves({name: move.scaled(tiles)}, Unit.BYTE) for name, move in kept.moves_of(e)]
    return added(parts, Unit.BYTE)


@dataclass(frozen=True, slots=True)
class _Operand:
    """One factor of a product: its tensor, and its output indices that the other factor lacks."""

    tensor: Tensor
    own: frozenset[Index]

    @property
    def over(self) -> frozenset[Index]:
        return frozenset(self.tensor.indices)


class _Kept:
    """What a kernel makes and multiplies, and the orientation in which its tiles stay where an accumulator left them."""

    def __init__(self, schedule: Schedule, kernel: Kernel) -> None:
        self._schedule, self._kernel = schedule, kernel
        self._read = {t.name for t in schedule.staged_of(kernel)} | {t.name for t in schedule.inputs_of(kernel)}
        self._staged: set[str] = set()
        # tiles over the same indices are made of one another point by point, and lie alike
        votes: dict[frozenset[Index], Counter[frozenset[Index]]] = {}
        for e in schedule.nodes(kernel):
            for operand in _operands(e) if is_contraction(e) else ():
                if self._is_made(operand):
                    votes.setdefault(operand.over, Counter())[operand.own] += 1
        self._rows = {over: count.most_common(1)[0][0] for over, count in votes.items()}

    def moves_of(self, product: Einsum) -> Iterator[tuple[str, Move]]:
        """Bytes of one run of *product* over one tile, by tensor."""
        rows, columns = _operands(product)
        if not self._stays(rows) and (self._stays(columns) or self._turned(product.output, columns)):
            rows, columns = columns, rows
        if not self._stays(rows):
            yield rows.tensor.name, self._crossing(rows, columns, n_I)
        yield columns.tensor.name, self._crossing(columns, rows, m_I)
        if self._is_put_aside(product.output):
            out = tile_size(self._kernel, product.output) * product.output.width
            yield product.output.name, Move(out, out)

    def _crossing(self, operand: _Operand, other: _Operand, side: sp.Expr) -> Move:
        """Read for each instruction along the *other* operand's side; what is made is written once, for all products of it."""
        made = self._is_made(operand)
        size = tile_size(self._kernel, operand.tensor) * self._width(other if made else operand)
        first = made and operand.tensor.name not in self._staged
        if made:
            self._staged.add(operand.tensor.name)
        return Move(size * up(tile_points(self._kernel, other.own) / side), size if first else sp.Integer(0))

    def _stays(self, operand: _Operand) -> bool:
        return self._is_made(operand) and self._rows[operand.over] == operand.own

    def _turned(self, output: Tensor, operand: _Operand) -> bool:
        """Whether a later product wants *output* with the rows of *operand*."""
        return self._rows.get(frozenset(output.indices)) == operand.own

    def _is_made(self, operand: _Operand) -> bool:
        return not is_brought_in(self._schedule, self._read, operand.tensor)

    def _is_put_aside(self, output: Tensor) -> bool:
        added_up = self._schedule.added_up_of(self._kernel)
        return output in added_up or is_put_aside(self._schedule, self._kernel, output)

    def _width(self, operand: _Operand) -> sp.Expr:
        """Bytes an element as it lies in shared memory: of what was brought in, before anything pointwise."""
        tensor = operand.tensor
        while tensor.name not in self._read and not self._is_made(operand):
            tensor = next(t for t in self._schedule.graph.producers[tensor.name].inputs if t.indices)
        return tensor.width


def _operands(product: Einsum) -> tuple[_Operand, _Operand]:
    left, right = product.inputs
    output = set(product.output.indices)
    own = [frozenset(output & set(a.indices) - set(b.indices)) for a, b in ((left, right), (right, left))]
    return _Operand(left, own[0]), _Operand(right, own[1])

"""Slips of single tensors, and of those that are taken together: read twice, once, too wide, left out, along another extent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from derive.cost import Move, Moves
from derive.einsum import Index, Tensor
from derive.exact import Number, value
from derive.schedule import Kernel
from derive.symbols import B, h, h_k
from outputs.testing.closed_form import ClosedForm
from outputs.testing.slip import Slip, Values, amount_at

_WIDTHS = {
    Fraction(1, 2): "half a byte",
    Fraction(1): "1 B",
    Fraction(2): "2 B",
    Fraction(4): "4 B",
    Fraction(8): "8 B",
}
_FP32 = 4


def slips_of_tensors(form: ClosedForm) -> Iterator[Slip]:
    """Every one of *form*; none of work or of room."""
    moves = form.moves
    if moves is None:
        return
    yield from _of_directions(form, moves)
    graph = form.account.derivation.schedule.graph
    groups = _groups(moves, graph.tensors)
    for group in groups:
        yield from _of_group(form, group, graph.tensors)
    for kernel in form.account.derivation.schedule.kernels:
        yield from _of_tiles(form, kernel, groups)
    yield from _of_what_stays(form, moves)


@dataclass(frozen=True)
class _Group:
    """Tensors that the same slip is made with.

    Attributes:
        moves: what each of them moves, in bytes.
        shared: indices that all of them carry.
    """

    moves: Mapping[str, Move]
    shared: tuple[Index, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Which."""
        return tuple(self.moves)

    @property
    def move(self) -> Move:
        """What they move in all."""
        return sum(self.moves.values(), Move())

    @property
    def all_read(self) -> bool:
        """Whether each of them is read."""
        return all(move.read != 0 for move in self.moves.values())

    @property
    def all_written(self) -> bool:
        """Whether each of them is written."""
        return all(move.write != 0 for move in self.moves.values())

    @property
    def says(self) -> str:
        """Their names, with the verb."""
        return " and ".join(self.names) + (" are" if len(self.names) > 1 else " is")


def _groups(moves: Moves, tensors: Mapping[str, Tensor]) -> list[_Group]:
    """Each tensor for itself; then those that run along one index, such as Q and O, K and V."""
    sets: list[tuple[str, ...]] = [(name,) for name in moves.by_tensor]
    for index in dict.fromkeys(i.name for name in moves.by_tensor for i in tensors[name].indices):
        sets.append(tuple(name for name in moves.by_tensor if index in {i.name for i in tensors[name].indices}))
    found = []
    for names in dict.fromkeys(names for names in sets if len(names) < len(moves.by_tensor) or len(names) == 1):
        first, *others = (tensors[name].indices for name in names)
        shared = tuple(i for i in first if all(i in other for other in others))
        found.append(_Group({name: moves.by_tensor[name] for name in names}, shared))
    return found


def _of_directions(form: ClosedForm, moves: Moves) -> Iterator[Slip]:
    read, write = moves.read.amount, moves.write.amount
    if read != 0 and write != 0:
        yield Slip("writes are left out", amount_at(read))
        yield Slip("reads are left out", amount_at(write))
        yield Slip("reads are counted as writes too: each is doubled", amount_at(form.amount + read))


def _of_group(form: ClosedForm, group: _Group, tensors: Mapping[str, Tensor]) -> Iterator[Slip]:
    total, move, says = form.amount, group.move, group.says
    both = move.read + move.write
    plural = len(group.names) > 1
    yield Slip(f"{says} forgotten", amount_at(total - both))
    if group.all_read:
        often = "they are" if plural else "it is"
        yield Slip(f"{says} read twice as often as {often}", amount_at(total + move.read))
    if group.all_written:
        yield Slip(f"{says} written twice", amount_at(total + move.write))
    reread = {name: form.account.compulsory.by_tensor.get(name, Move()).read for name in group.names}
    if all(group.moves[name].read not in (0, once) for name, once in reread.items()):
        once = sp.Add(*reread.values())
        yield Slip(f"{says} read once, and not again by each tile", amount_at(total - move.read + once))
    yield from _of_width(total, both, group, tensors)
    known = {i.extent for t in tensors.values() for i in t.indices if i.extent not in (1, B)}
    for index in group.shared:
        for extent in sorted(known - {index.extent} if index.extent != B else (), key=str):
            wrong = total + both * (extent / index.extent - 1)
            has = "they have" if plural else "it has"
            yield Slip(f"{says} counted with {extent} where {has} {index.extent}", amount_at(wrong))
    if both.has(h) and h_k in known:
        yield Slip(
            f"{says} counted once a key/value head, not once a query head", amount_at(total + both * (h_k / h - 1))
        )


def _of_width(total: sp.Expr, both: sp.Expr, group: _Group, tensors: Mapping[str, Tensor]) -> Iterator[Slip]:
    widths = {tensors[name].width for name in group.names}
    if len(widths) != 1:
        return
    (own,) = widths

    def at(width: Fraction) -> Callable[[Values], Number]:
        return lambda values: value(total, values) + value(both, values) * (width / Fraction(value(own, values)) - 1)

    for width, words in _WIDTHS.items():
        yield Slip(f"{group.says} counted {words} wide", at(width))


def _of_tiles(form: ClosedForm, kernel: Kernel, groups: list[_Group]) -> Iterator[Slip]:
    """What is held while a loop runs, loaded or stored at each of its trips; and what one CTA moves."""
    total = form.amount
    graph = form.account.derivation.schedule.graph
    if kernel.ctas != 1 and len(form.account.derivation.schedule.kernels) == 1:
        yield Slip("one CTA is counted, not all of them", amount_at(total / kernel.ctas))
    for loop in kernel.sequential:
        again = loop.trips - 1
        for group in groups:
            if any(loop.carried_by(graph.tensors[name]) for name in group.names):
                continue
            move, tile = group.move, f"each tile of {loop.tile} along {' and '.join(i.name for i in loop.indices)}"
            if group.all_read:
                yield Slip(f"{group.says} read again for {tile}", amount_at(total + move.read * again))
            if group.all_written:
                yield from _of_sums(total, group, loop.trips, tile, graph.tensors[group.names[0]].width)


def _of_sums(total: sp.Expr, group: _Group, trips: sp.Expr, tile: str, width: sp.Expr) -> Iterator[Slip]:
    """Partial sums that leave the chip: as wide as the result or as an fp32 accumulator."""
    write = group.move.write
    for wide, words in ((width, ""), (sp.Integer(_FP32), "as fp32 ")):
        part = write * wide / width
        yield Slip(f"{group.says} written {words}for {tile}, and once at the end", amount_at(total + part * trips))
        yield Slip(f"{group.says} written {words}for {tile}", amount_at(total - write + part * trips))
        both = part * (2 * trips - 1)
        yield Slip(f"{group.says} written {words}for {tile} and read back", amount_at(total - write + both))
        yield Slip(
            f"{group.says} written {words}for {tile} and read back, and written once at the end",
            amount_at(total + both),
        )


def _of_what_stays(form: ClosedForm, moves: Moves) -> Iterator[Slip]:
    """What the schedule keeps on chip, moved all the same: whole intermediates, and numbers a row such as the log-sum-exp."""
    graph = form.account.derivation.schedule.graph
    for name in graph.outputs:
        rows = sp.Mul(*(i.extent for i in graph.tensors[name].indices[:-1]))
        for count, words in ((1, "one number"), (2, "two numbers")):
            yield Slip(
                f"{words} a row of {name}, such as {'the log-sum-exp' if count == 1 else 'm and l'}, moved as fp32 too",
                amount_at(form.amount + _FP32 * count * rows),
            )
    alike: dict[tuple[sp.Expr, sp.Expr], list[str]] = {}
    shapes = {tensor.size for name, tensor in graph.tensors.items() if name in moves.by_tensor}
    for name, tensor in graph.tensors.items():
        if name not in moves.by_tensor and tensor.indices and tensor.size not in shapes:
            alike.setdefault((tensor.size, tensor.width), []).append(name)
    for (size, own), names in alike.items():
        for width, words in ((own, ""), (sp.Integer(_FP32), " as fp32")):
            says = f"{' or '.join(names)} leaves the chip{words}"
            yield Slip(f"{says}: written once", amount_at(form.amount + size * width))
            yield Slip(f"{says}: written and read back", amount_at(form.amount + 2 * size * width))

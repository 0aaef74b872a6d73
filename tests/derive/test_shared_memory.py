"""What matrix instructions read from shared memory, and what is staged there: against instructions issued one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.einsum import Einsum, Index, Tensor
from derive.evaluate import whole
from derive.exact import value
from derive.flops import is_contraction
from derive.replay_mask import Tiles, kept_tiles
from derive.schedule import Kernel, Schedule
from derive.shared_memory import kernel_shared_traffic, shared_traffic
from tests.strategies import PAIRS, derivation, shapes

Numbers = Mapping[str, int]
WIDTHS = {"b": 2, "b_kv": 3, "b_s": 5, "b_p": 7, "b_l": 11, "b_acc": 4, "b_part": 13, "b_h": 17}
FLASH = (
    ("mha", "flash1"),
    ("mha", "flash2"),
    ("gqa", "flash2-packed"),
    ("decode", "split-kv"),
    ("mha-backward", "flash2-backward"),
    ("gqa-backward", "flash2-backward-atomic"),
    ("mha-backward", "flash2-backward-split"),
)


class Instructions:
    """A kernel run tile by tile, each of its products instruction by instruction."""

    def __init__(self, schedule: Schedule, kernel: Kernel, numbers: Numbers) -> None:
        self.schedule, self.kernel, self.numbers = schedule, kernel, numbers
        self.keys_are_rows = "dS" in kernel.einsums
        self.extents = {i.name: whole(i.extent, numbers) for t in schedule.tensors_of(kernel) for i in t.indices}
        self.loops = [Tiles(loop, self.extents, numbers) for loop in kernel.loops]
        self.kept = (
            kept_tiles(schedule.mask_of(kernel), self.loops, numbers, self.extents) if kernel.skips_masked else None
        )

    def bytes(self) -> int:
        """Read and written in shared memory, over all CTAs."""
        return sum(self.of(e) for e in self.schedule.nodes(self.kernel) if is_contraction(e))

    def of(self, e: Einsum) -> int:
        """The same in one product."""
        return sum(self.tile(e) for _ in self.trips(e))

    def trips(self, e: Einsum) -> Iterator[tuple[int, ...]]:
        """Every time that a tile of *e* is run: at the first trip of sequential loops that it does not run over."""
        space = {i.name for i in e.space}
        over = [x.loop.grid or any(i.name in space for i in x.loop.indices) for x in self.loops]
        for at in product(*(range(x.trips if runs else 1) for x, runs in zip(self.loops, over, strict=True))):
            if self.kept is not None and all(over[n] for n in self.kept[0]):
                where, tiles = self.kept
                if tuple(at[n] for n in where) not in tiles:
                    continue
            yield at

    def tile(self, e: Einsum) -> int:
        """Bytes of one tile of *e*."""
        left, right = e.inputs
        rows, columns = (self.across(a, b, e) for a, b in ((left, right), (right, left)))
        depth = self.points([i for i in e.space if i not in e.output.indices])
        copies = self.points([i for i in e.output.indices if i in left.indices and i in right.indices])
        made = [t for t in e.inputs if not self.comes_from_memory(t)]
        staged = self.keys_are_rows and bool(made) and e.output.name.startswith("dQ")
        if right in made or self.lies_across(e.output, left):
            left, right, rows, columns = right, left, columns, rows
        found = 0
        for first_row, first_column in product(
            range(0, rows, self.numbers["m_I"]), range(0, columns, self.numbers["n_I"])
        ):
            if first_row == 0 and (left not in made or staged):  # once for every instruction beside it
                found += rows * depth * self.width(left, right, staged)
            if first_column == 0:
                found += columns * depth * self.width(right, left, False)
        if staged:  # it lies across, and is written before it is read
            found += rows * depth * self.width(left, right, staged)
        found *= copies
        if self.leaves_unfinished(e.output):
            found += 2 * self.points(e.output.indices) * WIDTHS[str(e.output.width)]
        return found

    def lies_across(self, output: Tensor, left: Tensor) -> bool:
        """Whether the scores of a backward pass are made with the keys as rows, since most products want them so."""
        return (
            self.keys_are_rows
            and {"q", "k"} <= {i.name for i in output.indices}
            and "q" in {i.name for i in left.indices}
        )

    def comes_from_memory(self, tensor: Tensor) -> bool:
        """Whether it is read, or is what is read times a number."""
        if tensor.name not in self.kernel.einsums:
            return True
        e = self.schedule.graph.producers[tensor.name]
        return len([t for t in e.inputs if t.indices]) == 1 and not e.reduced and self.comes_from_memory(e.inputs[0])

    def leaves_unfinished(self, output: Tensor) -> bool:
        """Whether it is the accumulator that each tile adds to in memory."""
        return output.name.startswith("dQ") or (self.kernel.in_memory and output.name == "U_O")

    def width(self, tensor: Tensor, other: Tensor, staged: bool) -> int:
        """Bytes an element of what is multiplied: a staged one in the type of the *other*, a scaled one as it was read."""
        while tensor.name in self.kernel.einsums and self.comes_from_memory(tensor):
            tensor = self.schedule.graph.producers[tensor.name].inputs[0]
        return WIDTHS[str(other.width if staged else tensor.width)]

    def across(self, tensor: Tensor, other: Tensor, e: Einsum) -> int:
        """Rows of an operand, or its columns: what it brings to the result of *e* and the *other* does not."""
        return self.points([i for i in tensor.indices if i in e.output.indices and i not in other.indices])

    def points(self, indices: list[Index] | tuple[Index, ...]) -> int:
        """Points of a whole tile."""
        names = {i.name for i in indices}
        looped = [x for x in self.loops if any(i.name in names for i in x.loop.indices)]
        done = {i.name for x in looped for i in x.loop.indices}
        return prod(x.tile for x in looped) * prod(self.extents[name] for name in names - done)


@settings(max_examples=25)
@given(numbers=shapes(), rows=st.integers(1, 5), columns=st.integers(1, 9), mask=st.sampled_from(["full", "causal"]))
@pytest.mark.parametrize(("name", "schedule"), FLASH)
def test_every_instruction_reads_its_operands(
    name: str, schedule: str, numbers: dict[str, int], rows: int, columns: int, mask: str
) -> None:
    """The closed form is the sum over tiles and instructions, whatever divides whatever."""
    made = derivation(name, schedule, mask).schedule
    numbers = {**numbers, "m_I": rows, "n_I": columns}
    for kernel in made.kernels:
        found = kernel_shared_traffic(made, kernel)
        if kernel.loops:
            assert found is not None
            assert value(found.total.amount, {**numbers, **WIDTHS}) == Instructions(made, kernel, numbers).bytes()


@pytest.mark.parametrize(("name", "schedule"), PAIRS)
def test_it_is_known_where_every_product_has_tiles_of_its_own(name: str, schedule: str) -> None:
    """Not where a library multiplies; else at least the smaller operand of every product is read once."""
    made = derivation(name, schedule, "full").schedule
    alone = [k for k in made.kernels if not k.loops and any(is_contraction(e) for e in made.nodes(k))]
    found = shared_traffic(made)
    assert (found is None) == bool(alone)
    if found is None:
        return
    multiplied = {t.name for k in made.kernels for e in made.nodes(k) if is_contraction(e) for t in e.inputs}
    assert multiplied <= set(found.by_tensor) | {t.name for k in made.kernels for t in made.internals_of(k)}
    assert all(
        m.read.is_nonnegative is not False and m.write.is_nonnegative is not False for m in found.by_tensor.values()
    )

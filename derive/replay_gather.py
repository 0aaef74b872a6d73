"""The tile walker's account of what is gathered: the rows are brought in, not the tensor they are rows of.

Each tile of gathered rows is loaded from the tensor that it is gathered from, row by row, as often as the tile is needed and
not held; two positions that name one row load it twice. A table of pages is loaded an entry at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Tensor
from derive.paging import Paging


def brought_in(einsums: Iterable[Einsum], read: Iterable[Tensor]) -> Iterator[Tensor]:
    """The shapes in which a kernel brings in what it reads, each under the name of the tensor in memory.

    Args:
        einsums: what the kernel runs.
        read: what it reads from memory.
    """
    einsums = tuple(einsums)
    for tensor in read:
        uses = [(e, n) for e in einsums for n, t in enumerate(e.inputs) if t.name == tensor.name]
        if any(e.map is not Map.GATHER or n == 1 for e, n in uses):
            yield tensor
        for e, n in uses:
            if e.map is Map.GATHER and n == 0:
                yield replace(e.output, name=tensor.name)


def tables_of(einsums: Iterable[Einsum]) -> Iterator[tuple[Tensor, Paging[Index]]]:
    """What a kernel reads as a table of pages and as nothing else, and how it says where rows lie."""
    einsums = tuple(einsums)
    for e in einsums:
        table = e.inputs[-1] if e.map is Map.GATHER else None
        if table is not None and e.paging is not None:
            uses = [x for x in einsums if table.name in {t.name for t in x.inputs}]
            if all(x.paging is not None and x.inputs[0].name != table.name for x in uses):
                yield table, e.paging

"""Tables of pages as kernels see them: what stands in pages is read as its rows, and a tile needs a few entries at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

import sympy as sp

from derive.einsum import Einsum, Index, Tensor
from derive.extremes import up
from derive.paging import Paging


class InTiles(Protocol):
    """What is asked of a loop here: ``derive.schedule.Loop``."""

    @property
    def indices(self) -> tuple[Index, ...]:
        """What it runs over."""

    @property
    def tile(self) -> sp.Expr:
        """Rows of one tile."""


def tiles_of(loops: Iterable[InTiles]) -> dict[Index, sp.Expr]:
    """Rows of a tile, of each index that *loops* run over."""
    return {i: loop.tile for loop in loops for i in loop.indices}


def entries_held(paging: Paging[Index], tiles: Mapping[Index, sp.Expr]) -> sp.Expr:
    """Entries of one table that a tile of B rows may need at once, wherever in a page it begins: 1 + ceil((B - 1)/P).

    Args:
        paging: how the rows lie in pages.
        tiles: rows of a tile, of each index that is run over in tiles.
    """
    if not set(tiles) & set(paging.rows):
        return paging.entry.extent
    return 1 + up((sp.Mul(*(tiles.get(i, i.extent) for i in paging.rows)) - 1) / paging.row.extent)


def tables(einsums: Iterable[Einsum]) -> dict[str, Paging[Index]]:
    """What *einsums* read as tables of pages, by name, and how each says where rows lie."""
    return {e.inputs[1].name: found for e in einsums if (found := e.paging) is not None}


def as_held(tensor: Tensor, einsums: Iterable[Einsum], tiles: Mapping[Index, sp.Expr]) -> Tensor:
    """*tensor* as a CTA that runs *einsums* in *tiles* holds it: of a table of pages, as many entries as a tile may need."""
    paging = tables(einsums).get(tensor.name)
    if paging is None:
        return tensor
    held = replace(paging.entry, extent=entries_held(paging, tiles))
    return replace(tensor, indices=tuple(held if i == paging.entry else i for i in tensor.indices))


def as_read(tensor: Tensor, einsums: Iterable[Einsum]) -> Tensor:
    """*tensor* as *einsums* read it: of pages, the rows that they gather, as if these stood in order.

    No two rows of a result are taken to be one: what sequences share of their pages is data.
    """
    rows = next((e.output for e in einsums if e.paging is not None and e.inputs[0] == tensor), None)
    return tensor if rows is None else replace(rows, name=tensor.name, width=tensor.width)

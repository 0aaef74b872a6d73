"""What a selection makes of arrays (NumPy): the positions of the largest, and the rows that stand at given positions.

Positions are whole numbers from 0; of equal elements the first is the larger one, so that every run selects alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from derive.einsum import Einsum, Index, Map
from derive.errors import DomainError
from derive.operators import Array, Block
from derive.paging import Paging


def selected(
    einsum: Einsum, axes: Sequence[str], operands: Sequence[Block], shape: Sequence[int], kept: Block | None = None
) -> Block:
    """The result of a selection, or the tile of it whose positions are at hand.

    Args:
        einsum: a top or a gather.
        axes: the result's axes.
        operands: what it reads, whole along the index that positions are along; where rows lie in pages, then also the
            ``numbers`` of the rows that are made.
        shape: the result's.
        kept: of a top, which elements its mask keeps; the others come last, whatever they are.

    Raises:
        DomainError: more is to be selected than there is, or a position is none of those there are.
    """
    if einsum.map is Map.TOP:
        return _largest(einsum, axes, operands[0], shape, kept)
    if einsum.paging is not None:
        return _from_pages(einsum, einsum.paging, axes, *operands)
    rows, positions = operands
    along = next(axis for axis in rows.axes if axis not in axes)
    return _taken(einsum, axes, rows, {along: positions.over(axes)})


def numbers(paging: Paging[Index], extents: Mapping[str, int]) -> Array:
    """The number of each row that a gather from pages makes, with an axis for each index of its rows."""
    lengths = [extents[i.name] for i in paging.rows]
    return np.arange(prod(lengths), dtype=np.float64).reshape(lengths)


def _largest(einsum: Einsum, axes: Sequence[str], block: Block, shape: Sequence[int], kept: Block | None) -> Block:
    made = next(axis for axis in axes if axis not in block.axes)
    through = next(axis for axis in block.axes if axis not in axes)
    order = [axis for axis in axes if axis != made]
    values = block.over([*order, through])
    if kept is not None:
        values = np.where(kept.over([*order, through]), values, -np.inf)
    count = shape[list(axes).index(made)]
    if count > values.shape[-1]:
        raise DomainError(f"{einsum}: {count} of {values.shape[-1]} along {through} cannot be selected; select fewer")
    largest = np.argsort(-values, axis=-1, kind="stable")[..., :count]
    return Block(tuple(axes), Block((*order, made), largest.astype(np.float64)).over(axes))


def _from_pages(
    einsum: Einsum, paging: Paging[Index], axes: Sequence[str], pages: Block, table: Block, made: Block
) -> Block:
    """The rows whose numbers are *made*, each from its place in the page that the table names for it."""
    size = pages.values.shape[pages.axes.index(paging.row.name)]
    number, entry = made.values.astype(np.int64), table.axes.index(paging.entry.name)
    entries = table.values.take(number // size, axis=entry)
    named = Block((*table.axes[:entry], *made.axes, *table.axes[entry + 1 :]), entries)
    inside = Block(made.axes, number % size)
    return _taken(einsum, axes, pages, {paging.page.name: named.over(axes), paging.row.name: inside.over(axes)})


def _taken(einsum: Einsum, axes: Sequence[str], rows: Block, places: Mapping[str, Array]) -> Block:
    """What stands at *places* along some axes of *rows*, and along its others where the result's own indices say."""
    lengths = dict(zip(rows.axes, rows.values.shape, strict=True))
    index = []
    for axis, length in lengths.items():
        at = places.get(axis)
        if at is None:
            index.append(Block((axis,), np.arange(length)).over(axes))
            continue
        whole = at.astype(np.int64)
        if (whole != at).any() or (whole < 0).any() or (whole >= length).any():
            raise DomainError(
                f"{einsum}: positions are whole numbers from 0 to {length - 1}; got {at.min()} to {at.max()}"
            )
        index.append(whole)
    return Block(tuple(axes), rows.values[tuple(index)])


def random_positions(
    rows: int, shape: Sequence[int], rng: np.random.Generator, *, distinct: bool = True, seen: Array | None = None
) -> Array:
    """Positions among *rows*, distinct along the last axis unless they may repeat; those that are *seen* come first.

    Raises:
        DomainError: there are fewer rows than distinct positions.
    """
    if not distinct:
        return rng.integers(0, rows, shape).astype(np.float64)
    if shape[-1] > rows:
        raise DomainError(f"{shape[-1]} distinct positions among {rows} rows cannot be drawn; select fewer")
    drawn = rng.random((*shape[:-1], rows))
    order = drawn if seen is None else np.where(seen, drawn, 1 + drawn)
    positions: Array = order.argsort(axis=-1)[..., : shape[-1]].astype(np.float64)
    return positions

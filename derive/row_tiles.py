r"""Keys in the outer loop: which row tiles meet a key tile, and which of them stays on chip for the next one.

A row tile is brought in once for every key tile that it meets, but the last one that meets key tile j stays if it is the first
that meets key tile j + 1:

    sum_j [last(j) = first(j + 1)] rows(first(j + 1)).

Every interval of a mask rises with the query, so the queries that see some key of a tile stand together, interval by interval,
and the first and the last row tile follow from their ends.

No row tile stays over key tiles that nobody sees, where there are several: an interval that left the keys before the gap while
there were more queries would have gone on to the next key, and one that came to the keys behind it would have come from the key
before. An interval that ends at some query is therefore counted only where it has all keys, and leaves no gap.
"""

from __future__ import annotations

from functools import reduce

import sympy as sp

from derive.extremes import down, least, most, up
from derive.interval import Interval, Rooms, rows_between, rows_between_copies
from derive.mask import Mask
from derive.same import Same
from derive.schedule import Loop
from derive.symbols import dummy

ZERO, ONE = sp.Integer(0), sp.Integer(1)
J = dummy("j")
"""The key tile's number, as in the papers."""
Keys = tuple[sp.Expr, sp.Expr]
"""The first key of a tile and the last."""


def are_plain(mask: Mask) -> bool:
    """Whether the row tiles that meet a key tile follow from the ends of the mask's intervals."""
    alone = len(mask.intervals) == 1 or all(i.copies == 1 for i in mask.intervals)
    whole = all(i.until is None or (i.first is None and i.last is None) for i in mask.intervals)
    return alone and whole and all(_rows_of(i, mask, (ZERO, ONE)) is not None for i in mask.intervals)


def rows_that_stay(mask: Mask, rows: Loop, keys: Loop) -> sp.Expr:
    """Query rows that stay on chip from one key tile to the next, of several row tiles, added up over the key tiles.

    Args:
        mask: a mask that ``are_plain`` holds for.
        rows: the loop over queries, inside the keys; perhaps flattened with the heads that share a KV head (heads fastest).
        keys: the loop over keys.
    """
    heads = sp.Mul(*(i.extent for i in rows.indices if i.name != mask.row))
    begin, middle, end = (sp.expand(keys.tile * (J + n)) for n in range(3))
    here = _met(mask, (begin, middle - 1))
    there = _met(mask, (middle, least(end, keys.extent) - 1))
    past = reduce(most, (least(past, mask.rows * room) for _, past, room in here), ZERO)
    nowhere = mask.rows + rows.tile
    first = reduce(least, (most(first, nowhere * (1 - room)) for first, _, room in there))
    last, first = up(heads * past / rows.tile) - 1, down(heads * first / rows.tile)
    stays = Same(last, first) * least(rows.tile, rows.extent - rows.tile * first)
    return sp.Sum(stays, (J, 0, keys.trips - 2))


def _met(mask: Mask, among: Keys) -> list[tuple[sp.Expr, sp.Expr, sp.Expr]]:
    """For each interval the first query that sees a key *among*, one past the last, and what is at least 1 where one does."""
    found = []
    for interval in mask.intervals:
        seen = _rows_of(interval, mask, among)
        assert seen is not None
        begin, end, rooms = seen
        found.append((begin, end, reduce(least, rooms, end - begin)))
    return found


def _rows_of(interval: Interval, mask: Mask, among: Keys) -> Rooms | None:
    between = rows_between if interval.copies == 1 else rows_between_copies
    return between(interval, mask.rows, among)

"""How many tiles meet a listed block, and what is in them: a function of the sizes that the list itself stands beside.

A list of hundreds of blocks has no closed form shorter than itself: a count is one function of the tiles, whose value is looked
up: for each run of row tiles that reach into the same rows of blocks, the key tiles that their kept blocks reach into.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import sympy as sp

from derive.errors import DomainError

Rows = tuple[tuple[int, ...], ...]
"""The blocks of keys that each row of blocks keeps, numbered from 0."""
COUNTS = ("tiles", "rows", "keys", "pairs")
"""What is counted of the tile pairs that are met: themselves, the rows or the keys in them, or both multiplied."""


class Listed(sp.Atom):  # type: ignore[misc]
    """The list, as an argument without parts."""

    __slots__ = ("kept",)

    def __new__(cls, kept: Rows) -> Listed:
        """An atom that holds *kept*."""
        made: Listed = sp.Atom.__new__(cls)
        made.kept = kept
        return made

    def _hashable_content(self) -> tuple[Any, ...]:
        return (self.kept,)

    def __getnewargs__(self) -> tuple[Rows]:
        return (self.kept,)

    def _sympystr(self, _: Any) -> str:
        return "blocks"


class Met(sp.Function):  # type: ignore[misc]
    """``Met(n, R, K, B_r, B_c, Q, C, blocks)``: ``COUNTS[n]`` of the pairs of a row tile and a key tile that meet a kept block.

    R rows in tiles of B_r and in blocks of Q, K keys in tiles of B_c and in blocks of C; the last of each may be shorter.
    """

    nargs = 8
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, what: Any, *rest: Any) -> Any:
        """A number once all sizes are numbers."""
        *sizes, listed = rest
        if all(s.is_Integer for s in sizes):
            return sp.Integer(met(COUNTS[int(what)], *map(int, sizes), listed.kept))
        return None

    @property
    def counts(self) -> str:
        """What it counts: one of ``COUNTS``."""
        return COUNTS[int(self.args[0])]

    @property
    def sizes(self) -> tuple[sp.Expr, ...]:
        """R, K, B_r, B_c, Q and C."""
        return tuple(self.args[1:-1])

    @property
    def shown(self) -> tuple[sp.Expr, ...]:
        """What tells it from others of one list: the tiles."""
        return tuple(self.args[3:5])

    @property
    def kept(self) -> Rows:
        """The list."""
        return tuple(self.args[-1].kept)

    def _sympystr(self, printer: Any) -> str:
        return f"{self.counts}({', '.join(printer._print(a) for a in self.shown)})"


@lru_cache(maxsize=4096)
def met(
    what: str, rows: int, keys: int, row_tile: int, key_tile: int, row_block: int, key_block: int, kept: Rows
) -> int:
    """The value of a ``Met`` at numbers.

    Raises:
        DomainError: a tile or a block below 1.
    """
    if min(row_tile, key_tile, row_block, key_block) < 1:
        raise DomainError("tiles and blocks of a list of blocks must be at least 1")
    total = 0
    for tiles, inside, blocks in _runs(rows, row_tile, row_block, kept):
        ends = [(first * key_block // key_tile, -(-min(past * key_block, keys) // key_tile)) for first, past in blocks]
        reached = united(ends)
        across = sum(
            min(past * key_tile, keys) - first * key_tile if what in ("keys", "pairs") else past - first
            for first, past in reached
        )
        total += across * (inside if what in ("rows", "pairs") else tiles)
    return total


def _runs(rows: int, tile: int, block: int, kept: Rows) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Runs of row tiles that reach into the same rows of blocks: how many, their rows, and the blocks of keys they reach.

    The last row of blocks goes on to the last row.
    """
    trips, last = -(-rows // tile), len(kept) - 1
    i = 0
    while i < trips:
        top, bottom = i * tile // block, (min((i + 1) * tile, rows) - 1) // block
        following = min(-(-(top + 1) * block // tile), (bottom + 1) * block // tile, trips)
        following = max(following, i + 1)
        if i < trips - 1:  # the last may be ragged
            following = min(following, trips - 1)
        seen = {key for row in kept[min(top, last) : min(bottom, last) + 1] for key in row}
        blocks = united((key, key + 1) for key in sorted(seen))
        if blocks:
            yield following - i, min(following * tile, rows) - i * tile, blocks
        i = following


def united(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in the order of their starts, those that touch or overlap made one; empty ones left out."""
    found: list[tuple[int, int]] = []
    for first, past in spans:
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], past))
        elif first < past:
            found.append((first, past))
    return found

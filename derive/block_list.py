r"""Block-sparse masks of which each kept block is named: row of blocks by row of blocks, the blocks of keys that it sees.

Blocks that stand side by side, or one below the other in like runs, make one rectangle; a rectangle is an interval of keys
that a range of queries sees. A tile that meets a kept block is run, whatever the tiles: ``derive.met_blocks`` counts these.

Source: PyTorch FlexAttention, pytorch.org/blog/flexattention (BlockMask); Dao et al. 2022, arXiv:2205.14135, section 3.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from derive.errors import BadValueError
from derive.extremes import least, up
from derive.interval import ONE, ZERO, Interval
from derive.mask import Mask, Span
from derive.met_blocks import COUNTS, Listed, Met, Rows
from derive.symbols import C_b


@dataclass(frozen=True)
class BlockList(Mask):
    """A mask that keeps the blocks of ``C_b`` queries by ``C_b`` keys that are listed.

    Attributes:
        kept: the list.
    """

    kept: Rows = ()

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """One a rectangle."""
        return block_intervals(self.kept)

    @property
    def is_one_interval(self) -> bool:
        """Its keys need not stand together, and a query's need not follow those of the one before."""
        return False

    def is_past_the_keys(self, interval: Interval, row: sp.Expr) -> sp.Expr:  # noqa: ARG002  (a listed block is in the grid)
        """Never."""
        return ZERO

    @cached_property
    def pairs(self) -> sp.Expr:
        """Pairs in the kept blocks; those at the end are as long as what is left."""
        low, right = len(self.kept) - 1, self._last
        rows = {False: C_b, True: self.rows - C_b * low}
        keys = {False: C_b, True: self._key(right + 1) - C_b * right}
        found = Counter((row == low, key == right) for row, kept in enumerate(self.kept) for key in kept)
        return sp.Add(*(n * rows[last_row] * keys[last_key] for (last_row, last_key), n in sorted(found.items())))

    def pairs_in(self, queries: Span, keys: Span) -> sp.Expr:
        """Pairs in the kept blocks among some queries and some keys, each from the first to one past the last."""

        def up_to(row: sp.Expr, key: sp.Expr) -> sp.Expr:
            sizes = (row, key, ONE, ONE, C_b, C_b)
            return Met(sp.Integer(COUNTS.index("pairs")), *sizes, Listed(self.kept)) if row != 0 and key != 0 else ZERO

        (first, past), (left, right) = queries, keys
        return up_to(past, right) - up_to(first, right) - up_to(past, left) + up_to(first, left)

    @cached_property
    def keys_touched(self) -> sp.Expr:
        """Keys in blocks that some row keeps."""
        touched = runs(sorted({key for row in self.kept for key in row}))
        return sp.Add(*(self._key(past) - self._key(first) for first, past in touched))

    @cached_property
    def rows_touched(self) -> sp.Expr:
        """Queries in rows that keep a block."""
        touched = runs(n for n, row in enumerate(self.kept) if row)
        return sp.Add(*(self._row(past) - self._row(first) for first, past in touched))

    @property
    def blocks(self) -> int:
        """How many blocks are kept."""
        return sum(map(len, self.kept))

    @property
    def of_blocks(self) -> sp.Expr:
        """How many there are."""
        return len(self.kept) * up(self.columns / C_b)

    def _row(self, block: int) -> sp.Expr:
        """The first query of a row of blocks, or one past the last query."""
        return self.rows if block == len(self.kept) else C_b * block

    def _key(self, block: int) -> sp.Expr:
        """The first key of a block, all keys where the last one that is kept ends past them."""
        return least(C_b * block, self.columns) if block > self._last else C_b * block

    @cached_property
    def _last(self) -> int:
        """The last block of keys that is kept."""
        return max(key for row in self.kept for key in row)

    def _clamp(self, x: sp.Expr) -> sp.Expr:
        """Ends of blocks lie between the first and the last key, that of the last one perhaps aside."""
        block = sp.expand(x) / C_b
        return self._key(int(block)) if block.is_Integer else super()._clamp(x)


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted numbers as (first, one past the last) of those that follow each other."""
    found: list[tuple[int, int]] = []
    for n in numbers:
        if found and found[-1][1] == n:
            found[-1] = (found[-1][0], n + 1)
        else:
            found.append((n, n + 1))
    return found


def rectangles(kept: Rows) -> list[tuple[int, int, int, int]]:
    """(first key, one past the last, first row, one past the last) in blocks, in the order of their keys."""
    opened: dict[tuple[int, int], int] = {}
    found = []
    for n, row in enumerate((*kept, ())):
        here = runs(sorted(row))
        for keys in [keys for keys in opened if keys not in here]:
            found.append((*keys, opened.pop(keys), n))
        for keys in here:
            opened.setdefault(keys, n)
    return sorted(found)


def block_intervals(kept: Rows) -> tuple[Interval, ...]:
    """The intervals of keys that a list of blocks keeps, each for the queries of its rows.

    Raises:
        BadValueError: the list is empty, or names a block twice.
    """
    for n, row in enumerate(kept):
        if len(set(row)) != len(row):
            twice = next(key for key in row if row.count(key) > 1)
            raise BadValueError(f"blocks: row {n} names block {twice} twice; name each block once")
    if not any(kept):
        raise BadValueError("blocks: no block is kept, so no query would see a key; keep one, such as blocks=0/0,1")
    return tuple(
        Interval(
            C_b * left,
            C_b * right - 1,
            since=C_b * top if top else None,
            until=C_b * bottom if bottom < len(kept) else None,
        )
        for left, right, top, bottom in rectangles(kept)
    )


def parsed(lines: Sequence[str]) -> Rows:
    """The list that *lines* write, a row each: ``0,2-4`` keeps blocks 0, 2, 3 and 4, and ``-`` none.

    Raises:
        BadValueError: a word that is no block number.
    """
    return tuple(
        () if line.strip() == "-" else tuple(n for part in line.split(",") for n in _part(part)) for line in lines
    )


def _part(text: str) -> range:
    first, dash, last = (word.strip() for word in text.partition("-"))
    if not all(
        word.isascii() and word.isdigit() and len(word) < 7 for word in (first, last or ("0" if not dash else ""))
    ):
        raise BadValueError(
            f"blocks: {text.strip()[:40]!r} is no block of keys; write the kept ones of each row, as in blocks=0/0,1/0,2-3 "
            "(rows apart by /, - for a row that keeps none)"
        )
    found = range(int(first), int(last if dash else first) + 1)
    if not found:
        raise BadValueError(f"blocks: {text.strip()} runs backwards; write the smaller block first")
    return found

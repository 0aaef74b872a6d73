"""Rows that lie in pages of one size, anywhere in memory: a table names the page of each run of rows.

Row k stands at k mod P of the page that entry k div P of the table names, P being the rows of a page. N rows take ceil(N/P)
entries, and whoever reads them in order reads each entry once.

Source: Kwon et al. 2023, PagedAttention, arXiv:2309.06180, section 4.2 (logical blocks, physical blocks and the block table).
"""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

import sympy as sp

from derive.extremes import up


class Axis(Protocol):
    """What is asked of an index here: ``derive.einsum.Index``."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def extent(self) -> sp.Expr:
        """How many values it takes."""

    @property
    def part_of(self) -> str:
        """The index whose range it cuts into parts."""


AnIndex = TypeVar("AnIndex", bound=Axis)


class Paging(NamedTuple, Generic[AnIndex]):
    """How a gather finds the rows of its result.

    Attributes:
        page: the index of the pages in memory.
        row: the index of a row inside one.
        entry: the index of the table's entries.
        rows: the index of the rows in order; where they are cut, the one that says which part, and the one inside it.
    """

    page: AnIndex
    row: AnIndex
    entry: AnIndex
    rows: tuple[AnIndex, ...]

    @property
    def extent(self) -> sp.Expr:
        """How many rows there are."""
        return sp.Mul(*(i.extent for i in self.rows))


def paging(
    made: tuple[AnIndex, ...], read: tuple[AnIndex, ...], positions: tuple[AnIndex, ...]
) -> Paging[AnIndex] | None:
    """How rows are found where *positions* name pages; ``None`` where they name rows, or nothing.

    Args:
        made: the indices of the result.
        read: those of what rows are gathered from.
        positions: those of the positions.
    """
    inside, entries = ([i for i in indices if i not in made] for indices in (read, positions))
    rows = tuple(i for i in made if i not in (*read, *positions))
    if (len(inside), len(entries)) != (2, 1) or not rows or any(i.part_of != rows[-1].name for i in rows[:-1]):
        return None
    found = Paging(inside[0], inside[1], entries[0], rows)
    return found if found.entry.extent == up(found.extent / found.row.extent) else None

"""Which entries of a table of pages the rows of a tile need, every iteration of a kernel at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from derive.einsum import Index
from derive.paging import Paging

Array = npt.NDArray[Any]


def rows_needed(
    paging: Paging[Index], extents: Mapping[str, int], cut: Mapping[str, tuple[Array, Array]]
) -> tuple[Array, Array]:
    """The first and the last row that each iteration needs.

    Args:
        paging: how rows lie in pages.
        extents: the extent of each index by name.
        cut: for an index that a loop runs over, where the tile of each iteration starts, and how many rows it has.
    """
    first, last = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for index in paging.rows:
        length = extents[index.name]
        start, count = cut.get(index.name, (np.zeros(1, np.int64), np.full(1, length)))
        first, last = first * length + start, last * length + start + count - 1
    return first, last


def goes_on(first: Array, last: Array, page: int) -> Array:
    """Whether the rows of an iteration follow those of the one before and begin in the page that these ended in."""
    follows: Array = (first[1:] == last[:-1] + 1) & (first[1:] // page == last[:-1] // page)
    return follows

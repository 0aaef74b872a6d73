"""What a selection means as expressions: positions by name, and the row that stands at a position.

No arithmetic says which of several real numbers is the largest: ``top`` stands for the position and nothing is proved of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy as sp

from derive.einsum import Einsum, Index, Map, Tensor
from derive.paging import Paging

Top = sp.Function("top", real=True)
"""``top(rank, x_0, ..., x_n)``: the position of the largest but *rank*; in closed form ``top(rank, x, (j, first, last))``."""


def selection_written_out(
    einsum: Einsum,
    at: Mapping[str, int],
    read: Callable[[Tensor, Mapping[str, int]], sp.Expr],
    extents: Mapping[str, int],
    kept: Callable[[Mapping[str, int]], bool],
) -> sp.Expr:
    """One element of a selection: a position by name, or ``sum_j [T = j] C[j]``.

    Args:
        einsum: a top or a gather.
        at: where its indices stand.
        read: an operand's element at a place.
        extents: the extent of each index by name.
        kept: whether a mask keeps what a top looks at there; below all else is what it does not.
    """
    if (paging := einsum.paging) is not None:
        size, number = extents[paging.row.name], _number(paging, at, extents)
        page = read(einsum.inputs[1], {**at, paging.entry.name: number // size})
        rows = [
            read(einsum.inputs[0], {**at, paging.page.name: n, paging.row.name: number % size})
            for n in range(extents[paging.page.name])
        ]
        return sp.Add(*(sp.KroneckerDelta(page, n) * element for n, element in enumerate(rows)))
    along, rank = _along(einsum)
    places = [{**at, along.name: n} for n in range(extents[along.name])]
    row = [read(einsum.inputs[0], there) if rank is None or kept(there) else -sp.oo for there in places]
    if rank is not None:
        return Top(sp.Integer(at[rank.name]), *row)
    place = read(einsum.inputs[1], at)
    return sp.Add(*(sp.KroneckerDelta(place, n) * element for n, element in enumerate(row)))


def selection_closed(
    einsum: Einsum,
    places: Mapping[str, sp.Expr],
    read: Callable[[Tensor, Mapping[str, sp.Expr]], sp.Expr],
    seen: Sequence[tuple[sp.Expr, sp.Expr]] = (),
) -> sp.Expr:
    """The same in closed form: ``C[T]``, an index that is an element.

    Args:
        einsum: a top or a gather.
        places: where its indices stand, the one that it looks along included.
        read: an operand's element at a place.
        seen: of a top under a mask, the first and the last that it looks at, for each interval.
    """
    if (paging := einsum.paging) is not None:
        number = _number(paging, places, {i.name: i.extent for i in paging.rows})
        entry, inside = sp.floor(number / paging.row.extent), sp.Mod(number, paging.row.extent, evaluate=False)
        page = read(einsum.inputs[1], {**places, paging.entry.name: entry})
        return read(einsum.inputs[0], {**places, paging.page.name: page, paging.row.name: inside})
    along, rank = _along(einsum)
    if rank is None:
        return read(einsum.inputs[0], {**places, along.name: read(einsum.inputs[1], places)})
    ranges = (sp.Tuple(places[along.name], first, last) for first, last in seen or [(sp.Integer(0), along.extent - 1)])
    return Top(places[rank.name], read(einsum.inputs[0], places), *ranges)


def _number(paging: Paging[Index], places: Mapping[str, Any], extents: Mapping[str, Any]) -> Any:
    """The number of a row: its place inside its part, after the rows of the parts before it."""
    number = 0
    for index in paging.rows:
        number = number * extents[index.name] + places[index.name]
    return number


def _along(einsum: Einsum) -> tuple[Index, Index | None]:
    """The index that positions are along, and of a top the one that says which position."""
    assert einsum.selected is not None
    ranks = [i for i in einsum.output.indices if i not in einsum.inputs[0].indices]
    return einsum.selected, ranks[0] if einsum.map is Map.TOP else None

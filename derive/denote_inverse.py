"""What the inverse of a unit lower triangle means as expressions: element by element, each row from those above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy as sp

from derive.einsum import Einsum, Tensor

Inverse = sp.Function("inverse", real=True)
"""``inverse(i, j, a, (q, 0, C - 1), (k, 0, C - 1))``: element (i, j) of the inverse of I + (a strictly below its diagonal)."""


def inverse_written_out(
    einsum: Einsum, at: Mapping[str, int], read: Callable[[Tensor, Mapping[str, int]], sp.Expr]
) -> sp.Expr:
    """One element by forward substitution: ``T[i,j] = -sum_{j <= m < i} A[i,m] T[m,j]``, T[j,j] = 1, zero above.

    Args:
        einsum: an inverse.
        at: where its indices stand.
        read: an operand's element at a place.
    """
    row, column = (i.name for i in einsum.inverted)
    made: dict[int, sp.Expr] = {at[column]: sp.Integer(1)}
    for i in range(at[column] + 1, at[row] + 1):
        terms = (read(einsum.inputs[0], {**at, row: i, column: m}) * made[m] for m in range(at[column], i))
        made[i] = -sp.Add(*terms)
    return made.get(at[row], sp.Integer(0))


def inverse_closed(
    einsum: Einsum,
    places: Mapping[str, sp.Expr],
    over: Mapping[str, sp.Expr],
    read: Callable[[Tensor, Mapping[str, sp.Expr]], sp.Expr],
) -> sp.Expr:
    """The same in closed form, the inverse left standing.

    Args:
        einsum: an inverse.
        places: where its indices stand.
        over: the same with variables of their own for rows and columns.
        read: an operand's element at a place.
    """
    ranges = (sp.Tuple(over[i.name], sp.Integer(0), i.extent - 1) for i in einsum.inverted)
    return Inverse(*(places[i.name] for i in einsum.inverted), read(einsum.inputs[0], over), *ranges)

"""How many entries of a table of pages a kernel reads, as its loops cut the rows that lie in them."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.einsum import Index, Tensor
from derive.errors import DomainError
from derive.exact import Gcd
from derive.extremes import down
from derive.paging import Paging
from derive.schedule import Loop


def entries_read(paging: Paging[Index], loops: tuple[Loop, ...]) -> sp.Expr:
    """Entries of one table that the CTAs of a kernel read while they go once through all of its rows.

    A CTA reads once each entry that its rows need. Where a grid loop cuts the N rows into T runs of R, two CTAs that meet
    inside a page of P rows both read its entry: ceil(N/P) + T - 1, less those of the boundaries i R, 0 < i < T, that are
    multiples of P: P / gcd(P, R) divides i.

    Raises:
        DomainError: the rows of a CTA do not follow one another.
    """
    cut = [loop for loop in loops if set(loop.indices) & set(paging.rows)]
    in_order = [loop.indices for loop in cut] == [(i,) for i in paging.rows[: len(cut)]]
    if not in_order or any(loop.tile != 1 for loop in cut[:-1]) or any(loop.grid for loop in cut[1:]):
        raise DomainError(
            f"entries of pages are counted where each CTA reads rows one after another; got {', '.join(map(str, cut))}"
        )
    page, once = paging.row.extent, paging.entry.extent
    if not cut or not cut[0].grid:
        return once
    run = cut[0].tile * sp.Mul(*(i.extent for i in paging.rows[1:]))
    return once + cut[0].trips - 1 - down((cut[0].trips - 1) * Gcd(page, run) / page)


def along_rows(table: Tensor, paging: Paging[Index]) -> Tensor:
    """*table* as loops over the rows cut it: they bring in other entries, as if it had one for each row."""
    return replace(table, indices=(*(i for i in table.indices if i != paging.entry), *paging.rows))

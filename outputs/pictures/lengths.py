"""Bytes against the length: each count of each schedule, and the length up to which the cache keeps what is read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import DomainError
from derive.exact import Number, value
from derive.symbols import N, N_k, N_q
from outputs.notation import put
from outputs.pictures.amounts import COUNTS, counts, symbols_of

if TYPE_CHECKING:
    from outputs.pictures.start import Start

LENGTHS = tuple(2**n for n in range(7, 21))
"""Lengths that are drawn, besides those on both sides of a threshold."""
_LONGEST_SUMMED = 2**17
_LONGEST_NESTED = 2**11
"""Where tiles are counted by a sum, and by a sum of sums, lines end here: some are added up term by term."""


@dataclass(frozen=True)
class Series:
    """One count of one schedule.

    Attributes:
        schedule: its name.
        count: ``compulsory``, ``sm`` or ``dram``.
        points: (length, bytes), as far as they are known.
        longest: no point is beyond this length.
    """

    schedule: str
    count: str
    points: tuple[tuple[int, Number], ...]
    longest: int


@dataclass(frozen=True)
class ByLength:
    """What a picture of bytes against the length shows.

    Attributes:
        symbol: the length that grows.
        series: the lines.
        thresholds: the last length at which nothing is read twice from HBM, by schedule, where there is one.
    """

    symbol: str
    series: tuple[Series, ...]
    thresholds: dict[str, int]


def by_length(start: Start) -> ByLength | None:
    """Bytes of every schedule against the length; ``None`` where the question has one length or none."""
    answer = start.answer
    used = symbols_of(moves.total.amount for a in answer.accounts for moves in counts(a).values())
    if answer.request.pattern.length is not None or not used & {N_q, N_k}:
        return None
    limits = {name: t.number for name, t in answer.thresholds.items() if t is not None and t.number is not None}
    thresholds = {name: n for name, n in limits.items() if LENGTHS[0] <= n <= LENGTHS[-1]}
    lengths = sorted({*LENGTHS, *thresholds.values(), *(n + 1 for n in thresholds.values() if n < LENGTHS[-1])})
    symbol = N if answer.tied else N_k
    series = []
    for account in answer.accounts:
        at = start.values(account)
        for count in COUNTS:
            amount = put(counts(account)[count].total.amount, answer.shown)
            longest = _longest(amount)
            points = _points(amount, symbol.name, at, [n for n in lengths if n <= longest])
            series.append(Series(account.name, count, points, longest))
    return ByLength(symbol.name, tuple(series), {a.name: limits[a.name] for a in answer.accounts if a.name in limits})


def _longest(amount: sp.Expr) -> int:
    """Where the line of *amount* ends."""
    sums = amount.atoms(sp.Sum)
    if any(total.args[0].has(sp.Sum) for total in sums):
        return _LONGEST_NESTED
    return _LONGEST_SUMMED if sums else LENGTHS[-1]


def _points(amount: sp.Expr, symbol: str, at: dict[str, Number], lengths: list[int]) -> tuple[tuple[int, Number], ...]:
    found = []
    for length in lengths:
        try:
            found.append((length, value(amount, {**at, symbol: length})))
        except DomainError:  # a sum too long to be added up
            break
    return tuple(found)

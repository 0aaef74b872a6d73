"""SM-side bytes against the row tile, up to the largest one whose footprint fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from derive.errors import BadValueError, DomainError
from derive.exact import Number, value
from derive.symbols import B_r
from outputs.bisection import last_that_holds

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation

SIZES = tuple(2**n for n in range(4, 13))
"""Row tiles that are drawn, as far as there are rows."""


@dataclass(frozen=True)
class Tiles:
    """One schedule.

    Attributes:
        schedule: its name.
        points: (rows, SM-side bytes, shared-memory bytes of a CTA).
        chosen: the row tile of the question.
        largest: the largest one that fits shared memory; ``None`` without a machine, or where all fit.
        room: the machine's shared memory a CTA, in bytes.
    """

    schedule: str
    points: tuple[tuple[int, Number, Number], ...]
    chosen: int
    largest: int | None
    room: int | None


def row_tiles(answer: Explanation) -> tuple[Tiles, ...]:
    """The schedules that have a row tile to choose.

    Raises:
        BadValueError: none has.
    """
    tiled = [a for a in answer.accounts if a.footprint is not None and a.sm.total.amount.has(B_r)]
    if not tiled:
        names = ", ".join(a.name for a in answer.accounts)
        raise BadValueError(f"no schedule of {names} has a row tile B_r to draw bytes against; flash2 has")
    return tuple(_one(answer, account) for account in tiled)


def _one(answer: Explanation, account: Account) -> Tiles:
    chosen, rows = int(account.values[B_r.name]), int(account.values.get("N_q", SIZES[-1]))
    points = []
    for size in sorted({*(s for s in SIZES if s <= rows), chosen}):
        at = {**account.values, B_r.name: size}
        try:
            points.append((size, value(account.sm.total.amount, at), value(account.footprint, at)))
        except DomainError:
            continue
    room = answer.machine.get("shared_mem_per_block_max") if answer.machine else None
    if room is None:
        return Tiles(account.name, tuple(points), chosen, None, None)

    def fits(size: int) -> bool:
        return value(account.footprint, {**account.values, B_r.name: size}) <= room.value

    most = 2 * SIZES[-1]
    largest = None if fits(most) else last_that_holds(fits, 0, most)
    return Tiles(account.name, tuple(points), chosen, largest, int(room.value))

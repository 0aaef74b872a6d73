"""What numbers make of classes: the regime they lie in, the leading term in bytes, and real counts at real tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.buffers import working_set
from derive.errors import DomainError, InfeasibleError, UnboundError
from derive.exact import Number, holds, value
from derive.growth.optimum import best_numerically
from outputs.crossing import Changes, changes, count_at
from outputs.deduction import account, unfitted
from outputs.notation import with_one_length

if TYPE_CHECKING:
    from derive.growth import Lead
    from derive.schedule import Schedule
    from outputs.account import Account
    from outputs.bounds import Bounds


@dataclass(frozen=True)
class AtNumbers:
    """Bounds met with numbers.

    Attributes:
        of: the bounds.
    """

    of: Bounds

    @cached_property
    def values(self) -> dict[str, Number]:
        """Numbers by name: those given, the machine's M, and N where both lengths are one."""
        made = unfitted(self.of.request, next(iter(self.of.accounts)), self.of.machine, self.of.options)
        return with_one_length(made.values, bool(self.of.alike))

    def number(self, amount: sp.Basic) -> Number | None:
        """The exact value of *amount*, or ``None`` while one of its symbols has none."""
        try:
            return value(amount, self.values)
        except UnboundError:
            return None

    def leading(self, name: str) -> Lead | None:
        """The monomial whose region the numbers lie in."""
        for lead in self.of.classes[name].leads:
            conditions = self.of.parameters.conditions(lead.region)
            try:
                if all(holds(small <= big, self.values) for small, big in conditions):
                    return lead
            except UnboundError:
                return None
        return None

    def leading_bytes(self, lead: Lead | None) -> int | None:
        """The leading term at its constant and the best tiles, in whole bytes of the operands' type, rounded down."""
        if len({n for name, n in self.of.request.widths.items() if name not in ("b_acc", "b_part")}) > 1:
            return None  # tensors of several widths: elements have no one size
        if lead is None or lead.constant is None or any(s.name not in self.values for s in lead.monomial.free_symbols):
            return None
        bound = {s: sp.Rational(Fraction(self.values[s.name])) for s in lead.monomial.free_symbols}
        width = sp.Rational(Fraction(self.of.request.operand.width))
        return int(sp.floor((lead.constant * lead.monomial * width).subs(bound)))

    def best_tiles(self, name: str) -> dict[str, int] | None:
        """Whole tiles next below the best real ones at the numbers.

        ``None`` while a number is missing, where none fit, or where several kernels each have their own.
        """
        found = self.of.problems[name]
        if len(found) != 1:
            return None
        ((kernel, problem),) = found.items()
        try:
            if (closed := self.of.optima[name].get(kernel)) is not None:
                tiles = {t: self._root(e) for t, e in closed.tiles.items()}
                if all(n <= value(problem.extents[t], self.values) for t, n in tiles.items()):
                    return {t.name: n for t, n in tiles.items()} if min(tiles.values()) >= 1 else None
            numbers = {n: float(v) for n, v in self.values.items()}
            return {t.name: int(x * (1 + 1e-9)) for t, x in best_numerically(problem, numbers).items()}
        except (UnboundError, DomainError, KeyError):
            return None

    def _root(self, tile: sp.Expr) -> int:
        """The whole part of *tile* at the numbers."""
        bound = {s: sp.Rational(Fraction(self.values[s.name])) for s in tile.free_symbols if s.name in self.values}
        if len(bound) < len(tile.free_symbols):
            raise UnboundError(f"{tile} has symbols without a value")
        return int(sp.floor(tile.subs(bound)))

    @cached_property
    def best(self) -> dict[str, Account | None]:
        """Each schedule with its best whole tiles; ``None`` where those are not known."""
        return {name: self._with(self.best_tiles(name), name) for name in self.of.classes}

    def _with(self, tiles: dict[str, int] | None, name: str) -> Account | None:
        if tiles is None or "M" not in self.values:
            return None
        request = replace(self.of.request, numbers={**self.of.request.numbers, **tiles})
        return unfitted(request, name, self.of.machine, self.of.options)

    @cached_property
    def usual(self) -> dict[str, Account | None]:
        """Each schedule with the tiles given, or its usual ones; ``None`` where they fit neither way.

        Raises:
            InfeasibleError: one was asked for by name and does not fit.
        """
        return {name: self._usual(name) for name in self.of.classes}

    def _usual(self, name: str) -> Account | None:
        try:
            return account(self.of.request, name, self.of.machine, self.of.options)
        except InfeasibleError:
            if self.of.asked:
                raise
            return None

    def held(self, made: Account) -> Number | None:
        """Elements that the largest CTA of *made* holds at once."""
        schedule: Schedule = made.derivation.schedule
        sizes = [made.number(working_set(schedule, k).amount) for k in schedule.kernels if k.loops]
        return max((s for s in sizes if s is not None), default=None)

    @cached_property
    def crossings(self) -> dict[tuple[str, str], Changes]:
        """The lengths at which another of two schedules moves fewer SM-side bytes, at the tiles and sizes given."""
        found = {}
        names = ("N_q", "N_k") if self.of.alike else ("N_k",)
        for pair in self.of.equalities:
            made = [m for name in pair if (m := self.usual[name]) is not None]
            totals = [m.sm.total.amount for m in made]
            if len(made) < 2 or any(m.number(t) is None for m, t in zip(made, totals, strict=True)):
                continue
            counts = [count_at(m, t, names) for m, t in zip(made, totals, strict=True)]
            change = changes(counts[0], counts[1])
            if change is not None:
                found[pair] = change
        return found

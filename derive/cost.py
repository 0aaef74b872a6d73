"""A formula that knows its unit and where it holds, and the table of reads and writes made of such formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import sympy as sp

from derive.errors import DomainError, UnitError
from derive.exact import Number, Values, holds, value
from derive.substitution import free


class Unit(Enum):
    """What a cost counts. Units never mix."""

    ELEMENT = "elements"
    BYTE = "bytes"
    FLOP = "FLOP"
    OPERATION = "operations"
    SECOND = "s"


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount of one unit, and the condition under which it is right.

    Attributes:
        amount: closed form.
        unit: what it counts.
        validity: where the form holds; evaluation elsewhere raises.
    """

    amount: sp.Expr
    unit: Unit
    validity: sp.Basic = sp.true

    def __add__(self, other: Cost) -> Cost:
        """The sum; raises ``UnitError`` when the units differ."""
        if self.unit is not other.unit:
            raise UnitError(f"{self.unit.value} and {other.unit.value} do not add; convert one of them first")
        return Cost(self.amount + other.amount, self.unit, sp.And(self.validity, other.validity))

    def value(self, values: Values) -> Number:
        """The exact number at *values*.

        Raises:
            UnboundError: a symbol has no value.
            DomainError: the form does not hold there.
        """
        if self.validity != sp.true and not holds(self.validity, values):
            at = ", ".join(f"{s.name}: {values[s.name]}" for s in sorted(free(self.validity), key=str))
            raise DomainError(
                f"{self.amount} {self.unit.value} holds only where {self.validity}; at {{{at}}} that is False"
            )
        return value(self.amount, values)

    def bound(self, replacements: Mapping[sp.Symbol, sp.Expr]) -> Cost:
        """The cost with some symbols replaced."""
        return Cost(self.amount.subs(replacements), self.unit, self.validity.subs(replacements))


@dataclass(frozen=True, slots=True)
class Move:
    """What is read and written of one tensor, in one unit."""

    read: sp.Expr = field(default_factory=lambda: sp.Integer(0))
    write: sp.Expr = field(default_factory=lambda: sp.Integer(0))

    def __add__(self, other: Move) -> Move:
        return Move(self.read + other.read, self.write + other.write)

    def scaled(self, by: sp.Expr) -> Move:
        """Both directions times *by*."""
        return Move(self.read * by, self.write * by)


@dataclass(frozen=True, slots=True)
class Moves:
    """Reads and writes by tensor; adding them up needs one unit for all.

    Attributes:
        by_tensor: each tensor's move.
        unit: elements or bytes.
    """

    by_tensor: Mapping[str, Move]
    unit: Unit

    def __add__(self, other: Moves) -> Moves:
        """Tensor by tensor; raises ``UnitError`` when the units differ."""
        if self.unit is not other.unit:
            raise UnitError(f"{self.unit.value} and {other.unit.value} do not add; convert one of them first")
        names = dict.fromkeys((*self.by_tensor, *other.by_tensor))
        none = Move()
        return Moves({n: self.by_tensor.get(n, none) + other.by_tensor.get(n, none) for n in names}, self.unit)

    @property
    def read(self) -> Cost:
        """All reads."""
        return Cost(sp.Add(*(m.read for m in self.by_tensor.values())), self.unit)

    @property
    def write(self) -> Cost:
        """All writes."""
        return Cost(sp.Add(*(m.write for m in self.by_tensor.values())), self.unit)

    @property
    def total(self) -> Cost:
        """All reads and writes."""
        return self.read + self.write

    def in_bytes(self, widths: Mapping[str, sp.Expr]) -> Moves:
        """The same moves in bytes, each tensor by its own width.

        Raises:
            UnitError: they are in bytes already.
        """
        if self.unit is not Unit.ELEMENT:
            raise UnitError(f"only elements have a width; these are {self.unit.value}")
        return Moves({n: m.scaled(widths[n]) for n, m in self.by_tensor.items()}, Unit.BYTE)


def added(parts: Iterable[Moves], unit: Unit) -> Moves:
    """The sum of *parts*; empty when there are none."""
    total = Moves({}, unit)
    for part in parts:
        total = total + part
    return total

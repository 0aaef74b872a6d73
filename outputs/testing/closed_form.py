"""A closed form to test against: a quantity of a schedule of a variant, called with the sizes a person types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import BadValueError, nearest
from derive.exact import Number, value
from derive.flops import Pipe
from derive.symbols import MEANINGS
from outputs.account import Account
from outputs.request import Request, read_request
from rules.derivations import plan

if TYPE_CHECKING:
    from derive.cost import Moves

MOVING = ("compulsory", "sm", "dram")
"""Quantities in bytes that are reads and writes of tensors."""
QUANTITIES: Mapping[str, Callable[[Account], sp.Expr | None]] = {
    "flops": lambda a: a.useful[Pipe.MMA],
    "executed": lambda a: a.executed[Pipe.MMA],
    "exp": lambda a: a.useful[Pipe.SFU],
    "compulsory": lambda a: a.compulsory.total.amount,
    "sm": lambda a: a.sm.total.amount,
    "dram": lambda a: a.dram.total.amount,
    "footprint": lambda a: a.footprint,
    "peak": lambda a: a.memory_peak,
}
"""What can be asked for: matrix FLOP, useful and run; exponentials; bytes at three levels; shared memory; HBM at its peak."""
_NAMES = {meaning.key: name for name, meaning in MEANINGS.items() if meaning.key}


@dataclass(frozen=True)
class ClosedForm:
    """One quantity; calling it with sizes gives its exact value.

    Attributes:
        request: variant, mask, element types, and numbers that stay as they are.
        schedule: name of the schedule.
        quantity: one of ``QUANTITIES``.
    """

    request: Request
    schedule: str
    quantity: str

    @cached_property
    def account(self) -> Account:
        """The derivation, all symbols kept."""
        return Account(plan(self.schedule).derive(self.request.variant.graph(self.request.pattern)), {})

    @cached_property
    def amount(self) -> sp.Expr:
        """The quantity in symbols.

        Raises:
            BadValueError: the schedule has none, such as shared memory of kernels that choose no tiles.
        """
        found = QUANTITIES[self.quantity](self.account)
        if found is None:
            raise BadValueError(f"{self.schedule} has no {self.quantity}: no kernel of it chooses tiles; try flash2")
        return found

    @property
    def moves(self) -> Moves | None:
        """The reads and writes it is the sum of, in bytes; ``None`` for work and room."""
        return getattr(self.account, self.quantity) if self.quantity in MOVING else None

    def masked(self, mask: str) -> ClosedForm:
        """The same under another mask."""
        from derive.masks import Pattern

        return replace(self, request=replace(self.request, pattern=Pattern(mask)))

    def values(self, sizes: Mapping[str, Number]) -> dict[str, Number]:
        """Values by symbol name of *sizes* by key: N sets both lengths; what is left out has its usual value.

        Raises:
            UnknownNameError: a key that does not exist.
        """
        found: dict[str, Number] = {**dict.fromkeys(("n_L2",), 1), **self.request.widths, **self.request.numbers}
        for key, size in sizes.items():
            if key == "N":
                found |= {"N": size, "N_q": size, "N_k": size}
            elif key in _NAMES or key in MEANINGS:
                found[_NAMES.get(key, key)] = size
            else:
                raise nearest("size", key, ("N", *_NAMES))
        for symbol, default in reversed(list(self.request.variant.defaults.items())):
            if symbol.name not in found and all(s.name in found for s in default.free_symbols):
                found[symbol.name] = value(default, found)
        for tile, usual in plan(self.schedule).tiles.items():
            if tile.name not in found and all(s.name in found for s in usual.free_symbols):
                found[tile.name] = value(usual, found)
        return found

    def __call__(self, **sizes: Number) -> Number:
        """The exact value at *sizes*, such as ``N=8192, d=128, Br=128``.

        Raises:
            UnboundError: a symbol has no value.
            UnknownNameError: a key that does not exist.
        """
        return value(self.amount, self.values(sizes))

    def __str__(self) -> str:
        return f"{self.quantity} of {self.request.variant.name}, {self.schedule}, mask {self.request.pattern}"


def closed_form(variant: str, schedule: str = "flash2", quantity: str = "sm", *words: str) -> ClosedForm:
    """The closed form of *quantity*.

    Args:
        variant: name of a variant, as for ``derive explain``.
        schedule: name of a schedule.
        quantity: one of ``QUANTITIES``; bytes, FLOP or operations.
        words: ``KEY=VALUE`` as on the command line: ``mask=causal``, ``dtype=fp16``, ``d=128``.

    Raises:
        UnknownNameError: a name that does not exist; the nearest is suggested.
        BadValueError: a word that cannot be read.
    """
    from derive.attention import variant as find_variant

    if quantity not in QUANTITIES:
        raise nearest("quantity", quantity, QUANTITIES)
    plan(schedule)
    return ClosedForm(read_request(find_variant(variant), words), schedule, quantity)

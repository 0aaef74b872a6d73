"""A closed form to test against: a quantity of a schedule of a variant, called with the sizes a person types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import BadValueError, UnboundError, nearest
from derive.exact import Number, value
from derive.flops import Pipe
from derive.masks import Pattern
from derive.substitution import free
from derive.symbols import MEANINGS
from outputs.account import Account
from outputs.request import Request, read_request
from rules.derivations import plan

if TYPE_CHECKING:
    from derive.cost import Moves
    from derive.graph import Graph

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
WORK: Mapping[str, Pipe] = {"flops": Pipe.MMA, "executed": Pipe.MMA, "exp": Pipe.SFU}
"""Quantities that are work, and the pipe that does it."""
_SAYS = {
    "flops": "matrix FLOP",
    "executed": "matrix FLOP run",
    "exp": "exponentials",
    "compulsory": "compulsory bytes",
    "sm": "SM-side bytes",
    "dram": "DRAM bytes",
    "footprint": "bytes of shared memory",
    "peak": "bytes of HBM at the peak",
}
_NAMES = {meaning.key: name for name, meaning in MEANINGS.items() if meaning.key}
_LONG = 10**6
"""A quotient with a longer denominator is a decimal number to whoever reads it."""


def shown(number: Number) -> str:
    """*number* as a person writes it: a whole number, a short quotient, or ten digits."""
    short = number.denominator < _LONG
    return str(number) if short else f"{float(number):.10g}"


def with_usual(values: Mapping[str, Number], usual: Mapping[str, sp.Expr]) -> dict[str, Number]:
    """*values*, and the *usual* ones of names that have none, where theirs are known."""
    found = dict(values)
    for name, amount in usual.items():
        if name not in found and all(s.name in found for s in amount.free_symbols):
            found[name] = value(amount, found)
    return found


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
        return self.account_of(self.request.variant.graph(self.request.pattern))

    def account_of(self, graph: Graph) -> Account:
        """The same derivation of another *graph*.

        Raises:
            PreconditionError: a rule of the schedule does not apply to it.
        """
        return Account(plan(self.schedule).derive(graph), {})

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

    @property
    def unit(self) -> str:
        """What one of it is: bytes, FLOP or exponentials."""
        return {Pipe.MMA: "FLOP", Pipe.SFU: "exponentials"}[WORK[self.quantity]] if self.quantity in WORK else "bytes"

    @property
    def says(self) -> str:
        """What is counted, such as ``SM-side bytes``."""
        return _SAYS[self.quantity]

    def named(self, *, schedule: str = "", quantity: str = "") -> ClosedForm:
        """The same question of another schedule, or another quantity."""
        return replace(self, schedule=schedule or self.schedule, quantity=quantity or self.quantity)

    def masked(self, mask: str | Pattern) -> ClosedForm:
        """The same under another mask, by its name or as ``masks()`` draws it."""
        pattern = Pattern(mask) if isinstance(mask, str) else mask
        return replace(self, request=replace(self.request, pattern=pattern))

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
        return with_usual(found, {tile.name: usual for tile, usual in plan(self.schedule).tiles.items()})

    def __call__(self, **sizes: Number) -> Number:
        """The exact value at *sizes*, such as ``N=8192, d=128, Br=128``.

        Raises:
            UnboundError: a symbol has no value.
            UnknownNameError: a key that does not exist.
        """
        __tracebackhide__ = True
        at = self.values(sizes)
        try:
            return value(self.amount, at)
        except UnboundError:
            lacking = sorted(s.name for s in free(self.amount) if s.name not in at)
            keys = [MEANINGS[name].key or name for name in lacking]
            words = ", ".join(f"'{key}=..'" for key in keys)
            raise UnboundError(
                f"{self} needs {' and '.join(keys)}, of no value yet: draw it too (over=), or fix it, closed_form(..., {words})"
            ) from None

    def parts(self, sizes: Mapping[str, Number]) -> str:
        """What the value at *sizes* is made of, tensor by tensor; empty for work and room."""
        if self.moves is None:
            return ""
        at, told = self.values(sizes), []
        for verb, way in (("reads", "read"), ("writes", "write")):
            each = [(name, value(getattr(move, way), at)) for name, move in self.moves.by_tensor.items()]
            told += (
                [f"{verb} {', '.join(f'{name} {shown(n)}' for name, n in each if n)}"]
                if any(n for _, n in each)
                else []
            )
        return "; ".join(told)

    def unsaid(self, sizes: Iterable[str]) -> list[str]:
        """Keys of sizes that have their usual value where only *sizes* are given, such as ``dv``, which is then d."""
        given = {
            *self.values(dict.fromkeys((key for key in sizes if key == "N"), 1)),
            *(_NAMES.get(k, k) for k in sizes),
        }
        left = {symbol.name for symbol in self.request.variant.defaults} - given - set(self.request.numbers)
        in_it = {s.name for s in free(self.amount)}
        return [MEANINGS[name].key for name in MEANINGS if name in left & in_it]

    def __str__(self) -> str:
        return f"{self.says} of {self.request.variant.name}, {self.schedule}, mask {self.request.pattern}"


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

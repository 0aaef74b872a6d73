"""A derivation met with numbers and a machine: every quantity as a closed form, and as an exact value where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.conversion import converted
from derive.cost import Move, Moves
from derive.dtype import dtype
from derive.errors import DomainError, UnboundError
from derive.exact import Number, holds, value
from derive.extremes import greatest
from derive.flops import Convention, Pipe, executed, flops, rescaling
from derive.footprint import footprint, memory_peak
from derive.residency import dram, live_between
from derive.schedule import Kernel
from derive.shared_memory import shared_traffic
from derive.sharing import Sharing, sharing
from derive.symbols import symbol
from derive.traffic import compulsory, traffic
from hardware.roofline import PIPES, Rate, Work, rate, ridge, roofline
from hardware.roofline import Pipe as Level
from outputs.products import flop_by_type, matmul_seconds, type_of

if TYPE_CHECKING:
    from derive.growth import Growth
    from derive.mask import Mask
    from derive.rewrite import Derivation
    from hardware.machine import Machine


@dataclass(frozen=True)
class Account:
    """What one schedule of one graph costs.

    Attributes:
        derivation: graph, steps and schedule.
        values: value by symbol name; a symbol without one leaves what depends on it symbolic.
        convention: how masked pairs enter the useful work.
        machine: the machine, if one was named.
        operand: name of the element type that matrix products multiply.
        narrow: name of the narrowest operand's type, where it is converted to that; empty where none is.
        types: name of the type in which a product takes an operand, by the symbol of its width; *operand* where it has none.
    """

    derivation: Derivation
    values: Mapping[str, Number]
    convention: Convention = Convention.EXACT
    machine: Machine | None = None
    operand: str = "bf16"
    narrow: str = ""
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The schedule's name."""
        return self.derivation.name

    def number(self, amount: sp.Basic) -> Number | None:
        """The exact value of *amount*, or ``None`` while one of its symbols has none."""
        try:
            return value(amount, self.values)
        except UnboundError:
            return None

    def exact(self, amount: sp.Basic) -> Number:
        """The exact value of *amount*; raises ``UnboundError`` while one of its symbols has none."""
        return value(amount, self.values)

    @cached_property
    def is_numeric(self) -> bool:
        """Whether every byte count has a value."""
        return self.number(self.sm.total.amount) is not None and self.number(self.dram.total.amount) is not None

    def whole(self, amount: sp.Basic) -> int | None:
        """The value of a count; half a byte of a narrow type counts as a whole one."""
        found = self.number(amount)
        return None if found is None else -(-found.numerator // found.denominator)

    @cached_property
    def widths(self) -> dict[str, sp.Expr]:
        """Bytes an element by tensor."""
        return {name: t.width for name, t in self.derivation.schedule.graph.tensors.items()}

    # --- work ---------------------------------------------------------------------------------------------------------

    @cached_property
    def executed(self) -> dict[Pipe, sp.Expr]:
        """Work the schedule runs, by pipe: whole tiles, widths padded where a multiple was given."""
        return {pipe: cost.amount for pipe, cost in executed(self.derivation.schedule, self._pad).items()}

    @property
    def _pad(self) -> sp.Expr:
        return symbol("n_pad") if "n_pad" in self.values else sp.Integer(1)

    @cached_property
    def matmul_by_type(self) -> dict[str, sp.Expr]:
        """FLOP run in matrix products, by the name of the type they multiply."""
        return flop_by_type(self, self.derivation.schedule.kernels, self._pad)

    @cached_property
    def matmul_seconds(self) -> sp.Expr | None:
        """Their time at the machine's rates, each type at its own; ``None`` without a machine."""
        return matmul_seconds(self, self.matmul_by_type)

    @cached_property
    def useful(self) -> dict[Pipe, sp.Expr]:
        """Work the convention counts, by pipe."""
        if self.convention is Convention.TILED:
            return self.executed
        return {pipe: cost.amount for pipe, cost in flops(self.derivation.schedule.graph, self.convention).items()}

    @cached_property
    def rescaling(self) -> dict[Pipe, sp.Expr]:
        """Work that the online softmax adds."""
        return {pipe: cost.amount for pipe, cost in rescaling(self.derivation.schedule).items()}

    @cached_property
    def converted(self) -> sp.Expr:
        """Elements converted to the type that products multiply, each time one is brought into an SM."""
        return sp.Add(*(self.kernel_converted(kernel) for kernel in self.derivation.schedule.kernels))

    def kernel_converted(self, kernel: Kernel) -> sp.Expr:
        """The same in one kernel."""
        if not self.narrow:
            return sp.Integer(0)
        chosen = type_of(self)
        return converted(self.derivation.schedule, kernel, lambda e: dtype(chosen(e)).width, self.values).amount

    # --- bytes --------------------------------------------------------------------------------------------------------

    @cached_property
    def compulsory(self) -> Moves:
        """Bytes that any schedule must move."""
        return compulsory(self.derivation.schedule.graph).in_bytes(self.widths)

    @cached_property
    def sm(self) -> Moves:
        """Bytes between the cache and the SMs."""
        return traffic(self.derivation.schedule).in_bytes(self.widths)

    @cached_property
    def dram(self) -> Moves:
        """Bytes between HBM and the cache."""
        return dram(self.derivation.schedule).in_bytes(self.widths)

    @cached_property
    def shared(self) -> Moves | None:
        """Bytes that cross shared memory for matrix products; ``None`` where a library multiplies in tiles of its own."""
        return shared_traffic(self.derivation.schedule)

    @cached_property
    def footprint(self) -> sp.Expr | None:
        """Shared-memory bytes of a CTA; ``None`` when no kernel chooses tiles."""
        found = footprint(self.derivation.schedule)
        return None if found is None else found.amount

    @cached_property
    def memory_peak(self) -> sp.Expr:
        """HBM bytes live at once."""
        return memory_peak(self.derivation.schedule).amount

    def growth(self, alike: Mapping[sp.Symbol, sp.Expr]) -> Growth | None:
        """The Theta class of the SM-side elements over all tiles that fit M; ``None`` where it is not derived."""
        from derive.growth import growth  # closed forms alone do not wait for linear programs
        from derive.growth.tile_bounds import narrowest, regime_of

        try:
            regime = regime_of(narrowest(self.derivation.start.masks), alike)
            return growth(self.derivation.schedule, alike, regime, constants=False)
        except DomainError:
            return None

    # --- the cache ----------------------------------------------------------------------------------------------------

    @cached_property
    def sharing(self) -> tuple[Kernel, Sharing] | None:
        """The kernel whose CTAs share slices of its inputs, and how."""
        for kernel in self.derivation.schedule.kernels:
            found = sharing(self.derivation.schedule, kernel)
            if found is not None:
                return kernel, found
        return None

    @cached_property
    def is_exact(self) -> bool | None:
        """Whether the HBM count of shared tensors is what an LRU cache shows; where not, the cache shows at most that."""
        if self.sharing is None:
            return None
        shared = self.sharing[1]
        exact = shared.is_exact(masked=self.mask_of is not None)
        try:
            return holds(exact, self.values) and not self.number(shared.beside)
        except UnboundError:
            return None

    @property
    def mask_of(self) -> Mask | None:
        """The graph's mask."""
        return self.derivation.start.mask

    @cached_property
    def rereads(self) -> bool:
        """Whether a slice has more than one reader: at given numbers, or at all."""
        if self.sharing is None:
            return False
        readers = self.number(self.sharing[1].sharers * self.sharing[1].rounds)
        return readers is None or readers > 1

    @cached_property
    def handed_on(self) -> dict[str, sp.Expr]:
        """Intermediates that one kernel writes and a later one reads, each with the bytes touched in between."""
        schedule = self.derivation.schedule
        found = {}
        for kernel in schedule.kernels:
            kept = kernel.residency.tensors if kernel.residency else ()
            for tensor in schedule.inputs_of(kernel):
                if tensor.name in kept and tensor.name in schedule.kernel_of:
                    found[tensor.name] = live_between(schedule, tensor, kernel)
        return found

    @cached_property
    def live_bytes(self) -> sp.Expr | None:
        """Bytes that must fit the cache for nothing to be read from HBM twice."""
        if self.sharing is not None:
            return self.sharing[1].live_bytes
        return greatest(self.handed_on.values()) if self.handed_on else None

    @cached_property
    def fits(self) -> bool | None:
        """Whether they fit."""
        if self.live_bytes is None:
            return None
        try:
            return holds(sp.Le(self.live_bytes, symbol("C_L2"), evaluate=False), self.values)
        except UnboundError:
            return None

    @cached_property
    def hit_rate(self) -> float | None:
        """L2 hits over the SMs' L2 requests, writes counted as hits."""
        requests, misses = self.number(self.sm.total.amount), self.number(self.dram.read.amount)
        return None if requests is None or misses is None else float(1 - misses / requests)

    # --- time ---------------------------------------------------------------------------------------------------------

    @cached_property
    def intensity(self) -> Number | None:
        """Useful matrix FLOP a byte of HBM traffic."""
        work, moved = self.number(self.useful[Pipe.MMA]), self.number(self.dram.total.amount)
        if work is None or not moved:
            return None
        return Fraction(work) / moved

    @cached_property
    def ridge(self) -> Number | None:
        """FLOP a byte at which the matrix pipe and HBM take equally long."""
        return None if self.machine is None else ridge(self.machine, dtype(self.operand).multiplies_as)

    def rate(self, pipe: Level) -> Rate | None:
        """The machine's rate of a pipe or level, with its provenance; ``None`` when it is not known."""
        if self.machine is None or (pipe == "convert" and not self.narrow):
            return None
        return rate(self.machine, pipe, dtype(self.narrow if pipe == "convert" else self.operand).multiplies_as)

    @cached_property
    def times(self) -> dict[Level, float | None]:
        """Seconds that each pipe and level needs at its peak rate, as far as known."""
        if self.machine is None:
            return {}
        amounts: dict[Level, sp.Expr] = {
            "mma": self.executed[Pipe.MMA],
            "exp": self.executed[Pipe.SFU],
            "vector": self.executed[Pipe.VECTOR],
            "convert": self.converted,
            **({} if self.shared is None else {"shared": self.shared.total.amount}),
            "l2": self.sm.total.amount,
            "dram": self.dram.total.amount,
        }
        exact = {level: self.number(amount) for level, amount in amounts.items() if level != "convert" or amount != 0}
        work = Work(**{level: None if n is None else sp.Rational(n) for level, n in exact.items()})
        narrow = dtype(self.narrow).multiplies_as if self.narrow else ""
        found = dict(roofline(work, self.machine, dtype(self.operand).multiplies_as, narrow).times)
        if len(self.matmul_by_type) > 1 or self.operand not in self.matmul_by_type:
            found["mma"] = None if self.matmul_seconds is None else self.number(self.matmul_seconds)
        return {level: None if (t := found[level]) is None else float(t) for level in PIPES}

    @property
    def bound(self) -> Level | None:
        """The pipe or level that takes longest."""
        return next((level for level, t in self.times.items() if t is not None and t == self.seconds), None)

    @property
    def seconds(self) -> float | None:
        """The least time at the machine's peak rates."""
        known = [t for t in self.times.values() if t is not None]
        return max(known, default=None)


def by_tensor(account: Account, moves: Moves) -> dict[str, tuple[int | None, int | None]]:
    """Bytes read and written of each tensor, as far as they have a value."""

    def both(move: Move) -> tuple[int | None, int | None]:
        return account.whole(move.read), account.whole(move.write)

    return {name: both(move) for name, move in moves.by_tensor.items()}

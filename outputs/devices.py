"""One attention shared among several devices: link bytes, memory, balance and block of each scheme, in symbols and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import BadValueError, PreconditionError, UnboundError
from derive.exact import Number, value
from derive.masks import Pattern
from derive.parallel.balance import Balance, imbalance, lock_step_imbalance
from derive.parallel.link import Device, head_tiles
from derive.symbols import N, N_k, N_q, R, h
from outputs.explanation import Explanation
from outputs.notation import put
from rules.parallel import names, scheme

if TYPE_CHECKING:
    from hardware.machine import Machine
    from outputs.request import Request
    from rules.scheme import Scheme

MOST_ASKED = 4096
"""Devices that are asked one by one where their pairs have no closed form."""


@dataclass(frozen=True)
class Division:
    """One scheme at the numbers that were given.

    Attributes:
        request: what was asked; its numbers hold ``R``.
        scheme: how the work is shared.
        machine: what each device is, if named.
        bandwidth: bytes a second over a device's links, one way; ``None`` where none was named.
    """

    request: Request
    scheme: Scheme
    machine: Machine | None = None
    bandwidth: Fraction | None = None

    @cached_property
    def device(self) -> Device:
        """One device, all sizes symbols."""
        return self.scheme.device(self.request.variant.graph(Pattern()))

    @cached_property
    def alike(self) -> dict[sp.Symbol, sp.Expr]:
        """Both lengths as N where they are one."""
        return {N_q: N, N_k: N} if Explanation(self.request, ()).tied else {}

    @cached_property
    def balance(self) -> Balance | None:
        """The pairs of each device; ``None`` where heads are dealt and every device has all pairs of its own."""
        if self.scheme.deals == "heads":
            return None
        graph = self.device.schedule.graph
        queries, keys = (graph.indices[name].extent.subs(self.alike) for name in ("q", "k"))
        return Balance(self.request.pattern.mask(queries, keys), queries, keys, self.scheme.shards)

    # --- closed forms and values --------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> dict[str, Number]:
        """Value by symbol name."""
        found: dict[str, Number] = {**self.request.widths, **self.request.numbers}
        if self.alike and "N_q" in found:
            found["N"] = found["N_q"]
        if self.machine is not None:
            found["F"] = self.machine.peak(self.request.operand.name).value
        if self.bandwidth is not None:
            found["B_link"] = self.bandwidth
        return found

    def stated(self, amount: sp.Expr) -> sp.Expr:
        """*amount* with the defaults of what was not given; heads that are dealt have none."""
        return self.request.stated(amount, {h} if self.scheme.deals == "heads" else ())

    def shown(self, amount: sp.Expr) -> sp.Expr:
        """*amount* as it is printed: N for both lengths where they are one, b for widths that are not set apart."""
        found = put(self.stated(amount), {**Explanation(self.request, ()).shown, **self.alike})
        return found if found.has(sp.Sum, sp.Piecewise) else sp.factor(found)

    def number(self, amount: sp.Expr | None) -> Number | None:
        """The exact value of *amount*; ``None`` while a symbol is open."""
        if amount is None:
            return None
        try:
            return value(self.stated(amount), self.values)
        except UnboundError:
            return None

    # --- links and memory ---------------------------------------------------------------------------------------------

    @cached_property
    def link_by_tensor(self) -> dict[str, sp.Expr]:
        """Bytes over a device's links, one way, by tensor: what it receives of an input, what it sends of a result."""
        moves = self.device.link.in_bytes(self.device.widths).by_tensor
        return {name: move.read + move.write for name, move in moves.items()}

    @property
    def link(self) -> sp.Expr:
        """All of them."""
        return sp.Add(*self.link_by_tensor.values())

    @cached_property
    def copies(self) -> dict[str, sp.Expr]:
        """On how many devices each element of a tensor lies, by tensor, where that is not one."""
        found = {t.name: sp.cancel(self.device.stored(t) / t.size) for t in self.device.tensors}
        return {name: count for name, count in found.items() if count != 1 and self.number(count) != 1}

    @cached_property
    def heads(self) -> dict[str, sp.Expr]:
        """Heads of a device by head index, where heads are dealt."""
        if self.scheme.deals != "heads":
            return {}
        return {i.name: size for i, size in head_tiles(self.device.schedule.graph)}

    @property
    def step_link(self) -> sp.Expr | None:
        """Bytes that arrive in one step; ``None`` where nothing streams."""
        return self.device.step_bytes if self.device.streamed else None

    # --- balance ------------------------------------------------------------------------------------------------------

    @cached_property
    def busiest_over_mean(self) -> Number | None:
        """Useful pairs of the busiest device over the mean, exactly."""
        if self.balance is None:
            return 1
        closed = self.number(self.balance.ratio(self.balance.busiest))
        devices = self.request.numbers.get(R.name)
        if closed is not None or devices is None or devices > MOST_ASKED:
            return closed
        try:
            return imbalance(self.balance.by_device(self.values))
        except UnboundError:
            return None

    @cached_property
    def step_pairs(self) -> tuple[Number, ...] | None:
        """Pairs of the busiest device at each step; ``None`` where a symbol is open or there are too many devices."""
        if self.balance is None or not self.device.streamed or R.name not in self.request.numbers:
            return None
        each, total = self.number(self.balance.step), self.number(self.balance.lock_step)
        devices = int(self.request.numbers[R.name])
        if each is not None and total is not None:
            return (total - (devices - 1) * each, *([each] * (devices - 1)))
        try:
            steps = self.balance.by_step(self.values)
        except UnboundError:
            return None
        return None if steps is None else tuple(max(step) for step in steps)

    @cached_property
    def lock_step_over_mean(self) -> Number | None:
        """What devices that wait for each other at every step spend, over the mean."""
        if self.balance is None or not self.device.streamed:
            return self.busiest_over_mean
        closed = self.number(self.balance.ratio(self.balance.lock_step))
        if closed is not None:
            return closed
        try:
            steps = self.balance.by_step(self.values) if R.name in self.request.numbers else None
        except UnboundError:
            return None
        return None if steps is None else lock_step_imbalance(steps)

    # --- overlap ------------------------------------------------------------------------------------------------------

    @cached_property
    def step_flop(self) -> sp.Expr | None:
        """Matrix FLOP of the busiest device at a step; ``None`` where that has no closed form."""
        if self.balance is None or not self.device.streamed or self.balance.step is None:
            return None
        return self.device.flop_a_pair * self.balance.step

    @cached_property
    def block(self) -> sp.Expr | None:
        """Tokens a device from which work hides the transfer; ``None`` where nothing streams or no closed form is found."""
        if self.balance is None:
            return None
        return self.device.hiding_block(self.balance.step, self.alike)

    @cached_property
    def times(self) -> dict[str, Number] | None:
        """Seconds of work in lock-step, of the links, and of the links where no work hides them; needs every rate."""
        rate, bandwidth = self.values.get("F"), self.bandwidth
        moved, flop = self.number(self.link), self.number(self.device.flop_a_pair)
        if rate is None or bandwidth is None or moved is None or flop is None:
            return None
        if self.step_pairs is not None and (tile := self.number(self.step_link)) is not None:
            works = [Fraction(flop * pairs) / rate for pairs in self.step_pairs]
            one = Fraction(tile) / bandwidth
            exposed = sum(max(one - work, Fraction(0)) for work in works[:-1])  # the last step waits for nothing
            return {"work": sum(works), "link": Fraction(moved) / bandwidth, "exposed": exposed}
        if self.device.streamed or self.busiest_over_mean is None:
            return None
        mean = self.number(self.balance.mean) if self.balance is not None else self._all_pairs
        if mean is None:
            return None
        link = Fraction(moved) / bandwidth
        return {"work": Fraction(flop * mean * self.busiest_over_mean) / rate, "link": link, "exposed": link}

    @property
    def _all_pairs(self) -> Number | None:
        graph = self.device.schedule.graph
        queries, keys = (graph.indices[name].extent for name in ("q", "k"))
        mask = self.request.pattern.mask(queries, keys)
        return self.number(queries * keys if mask is None else mask.pairs)

    # --- what cannot be -----------------------------------------------------------------------------------------------

    def refusal(self) -> str | None:
        """Why the scheme cannot be at these numbers, in one sentence; ``None`` where it can."""
        devices = self.request.numbers.get(R.name)
        if self.scheme.deals == "heads":
            try:
                _ = self.device
            except PreconditionError as error:  # nothing to deal
                return str(error)
        if devices is None:
            return None
        parts = self.scheme.parts(self.device.schedule.graph)
        for name, size, count in parts:
            sized = self.number(size)
            parted = self.number(count)
            if sized is None or parted is None or (Fraction(parted).denominator == 1 and sized % parted == 0):
                continue
            if name in ("q", "k"):
                return self._tokens_do_not_divide(name, size, int(sized), int(parted))
            return self._heads_do_not_divide(int(devices))
        return None

    def _tokens_do_not_divide(self, name: str, size: sp.Expr, sized: int, parted: int) -> str:
        pieces = parted // int(self.values[R.name])
        chunks = f"{parted} chunks ({pieces} for each device)" if pieces > 1 else f"{parted} devices"
        if not size.free_symbols:
            what = "query" if name == "q" else "key"
            return f"{self.request.variant.name} has {sized} {what} a head, which makes no {chunks}; deal heads instead"
        key = "N" if self.alike else ("Nq" if name == "q" else "Nk")
        near = max(parted, (sized + parted // 2) // parted * parted)
        return (
            f"{key}={sized} does not divide into {chunks} ({self.scheme.name}); the nearest that does is {key}={near}"
        )

    def _heads_do_not_divide(self, devices: int) -> str:
        heads = [
            (size, count) for name, size, count in self.scheme.parts(self.device.schedule.graph) if name not in "qk"
        ]

        def fits(number: int) -> bool:
            at = {**self.values, R.name: number}
            pairs = [(value(self.stated(s), at), Fraction(value(self.stated(c), at))) for s, c in heads]
            return all(c.denominator == 1 and s % c == 0 for s, c in pairs)

        total = int(value(self.stated(sp.Mul(*(s for s, _ in heads))), self.values))
        near = min(
            (n for n in range(2, min(total, 2**12) + 1) if fits(n)), key=lambda n: abs(n - devices), default=None
        )
        way = f"the nearest number that can is devices={near}" if near else "deal tokens instead"
        return (
            f"devices={devices} cannot share {total} query head{'s' * (total != 1)} evenly ({self.scheme.name}); {way}"
        )


def divisions(
    request: Request, chosen: str | None, machine: Machine | None, bandwidth: Fraction | None
) -> tuple[tuple[Division, ...], dict[str, str]]:
    """The schemes that can be, in order, and why others cannot.

    Args:
        request: what was asked.
        chosen: names of schemes, separated by commas; all when ``None``.
        machine: what each device is.
        bandwidth: bytes a second over its links, one way; the machine's own when ``None``.

    Raises:
        BadValueError: there is one device, a scheme that was named cannot be, none can, or the variant is a recurrence.
        UnknownNameError: no scheme has a name that was given.
        PreconditionError: the variant cannot be scheduled, as a backward pass.
    """
    if request.numbers.get(R.name) == 1:
        raise BadValueError(
            "devices=1: one device has nobody to share with; give devices=2 or more, or ask `derive explain`"
        )
    if any(e.map.is_selection for e in request.variant.graph().einsums):
        raise BadValueError(
            f"{request.variant.name} selects rows, and which device holds a selected row is data; ask `derive explain`, or "
            "divide the work of a variant that reads all keys"
        )
    if request.variant.graph(request.pattern).recurrences:
        raise BadValueError(
            f"{request.variant.name} hands a state on from step to step, and its sharing among devices is not counted yet; "
            "`derive explain` counts it on one"
        )
    asked = names() if chosen is None else tuple(dict.fromkeys(n.strip() for n in chosen.split(",") if n.strip()))
    if not asked:
        raise BadValueError(f"--scheme names no scheme; known: {', '.join(names())}")
    if bandwidth is None and machine is not None and (link := machine.get("link_bandwidth")) is not None:
        bandwidth = link.value
    found, refused = [], {}
    for name in asked:
        division = Division(request, scheme(name), machine, bandwidth)
        why = division.refusal()
        if why is None:
            found.append(division)
        else:
            refused[name] = why
    named = next(iter(refused.values()), None)
    one_query = not request.variant.extents["q"].free_symbols  # a decode step, whose tokens nobody meant to deal
    if named is not None and (chosen is not None or not found or (asked[0] in refused and not one_query)):
        raise BadValueError(named)
    return tuple(found), refused

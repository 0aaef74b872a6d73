"""Everything one question asks for: the schedules side by side, and the same question causal, in decode, and further out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from derive.errors import BadValueError, PreconditionError
from derive.exact import Number
from derive.graph import Graph
from derive.masks import Pattern
from derive.symbols import MEANINGS, N, N_k, N_q, b, n_s, symbol
from derive.training import Training
from outputs.deduction import Options, account
from outputs.threshold import Threshold, threshold
from rules.derivations import plan

if TYPE_CHECKING:
    from hardware.machine import Machine
    from outputs.account import Account
    from outputs.request import Request


_OF_SOME_SCHEDULES = ("n_s", "B_d", "C_t")
"""Numbers that only some schedules have a use for; the tiles of rows and keys are read on where no schedule has them."""


@dataclass(frozen=True)
class Explanation:
    """The answer to ``derive explain``.

    Attributes:
        request: what was asked.
        schedules: names, in order.
        machine: the machine, if one was named.
        options: how to read the question.
    """

    request: Request
    schedules: tuple[str, ...]
    machine: Machine | None = None
    options: Options = field(default_factory=Options)

    @cached_property
    def accounts(self) -> tuple[Account, ...]:
        """One account a schedule."""
        return tuple(self._account(self.request, name) for name in self.schedules)

    def refuse_unused(self) -> None:
        """Raise where a number is given that none of the schedules has a use for.

        Raises:
            BadValueError: it has none; the message says which number.
        """
        schedules = [account.derivation.schedule for account in self.accounts]
        extents = (i.extent for s in schedules for i in s.graph.indices.values())
        tiles = (loop.tile for s in schedules for kernel in s.kernels for loop in kernel.loops)
        used = {symbol.name for e in (*extents, *tiles) for symbol in e.free_symbols}
        for name in _OF_SOME_SCHEDULES:
            if name in self.request.numbers and name not in used:
                raise BadValueError(
                    f"{MEANINGS[name].key}={self.request.numbers[name]} ({MEANINGS[name].says}) is used by none of "
                    f"{', '.join(a.name for a in self.accounts)}; leave it out, or name a schedule that does"
                )

    @property
    def fused(self) -> Account | None:
        """The last schedule whose CTAs share slices of its inputs: the one that residency is about."""
        return next((a for a in reversed(self.accounts) if a.sharing is not None), None)

    @cached_property
    def thresholds(self) -> dict[str, Threshold | None]:
        """Where the residency of each schedule ends."""
        if self.request.pattern.length is not None:
            return dict.fromkeys(a.name for a in self.accounts)
        return {a.name: threshold(a, tied=self.tied) for a in self.accounts}

    @property
    def tied(self) -> bool:
        """Whether both lengths are one: N was given, or neither was."""
        lengths = {"N_q", "N_k"} & set(self.request.numbers)
        variant = self.request.variant
        return self.request.tied or (not lengths and variant.one_sequence and N_q in variant.symbols)

    def further_out(self, found: Account) -> Account | None:
        """*found* at the first power of two past its threshold: what happens when residency fails."""
        limit = self.thresholds[found.name]
        if self.request.pattern.length is not None:
            return None  # a list of documents has one length
        if limit is None or limit.number is None or limit.number < 1:
            return None
        length = 2 ** int(limit.number).bit_length()
        for divisor, dividend in self.request.variant.divides:
            if dividend == N_q and divisor.name in self.request.numbers:
                length = -(-length // int(self.request.numbers[divisor.name])) * int(self.request.numbers[divisor.name])
        return self.at_length(found.name, length)

    def at_length(self, schedule: str, length: int, **options: object) -> Account:
        """*schedule* at another length, perhaps with other options."""
        numbers: dict[str, Number] = {**self.request.numbers, "N_k": length}
        if self.tied:
            numbers["N_q"] = length
        return self._account(replace(self.request, numbers=numbers), schedule, **options)

    def causal(self, schedule: str) -> Account | None:
        """*schedule* under a causal mask, when the question had none and the schedule is legal under one."""
        if self.request.mask != "full" or self.request.variant.own_mask is not None:
            return None
        try:
            return self._account(replace(self.request, pattern=Pattern("causal")), schedule)
        except PreconditionError:
            return None

    def decode(self, schedule: str) -> Account | None:
        """*schedule* with one query a head, when the question had more; packed documents and backward passes have none."""
        if self.request.pattern.length is not None or self.request.variant.direction != "forward":
            return None
        if self.request.variant.own_mask not in (None, "full"):
            return None  # its past is a state, and no number of keys
        if N_q not in self.request.variant.symbols or self.request.numbers.get("N_q") == 1:
            return None
        numbers = {**self.request.numbers, "N_q": 1}
        return self._account(replace(self.request, numbers=numbers, tied=False), schedule)

    def with_row_tile(self, schedule: str, rows: int) -> Account:
        """*schedule* with tiles of *rows* queries, whether or not they fit, and the parts of the keys that it has here."""
        here = next((a.values for a in self.accounts if a.name == schedule), {})
        parts = {n_s.name: here[n_s.name]} if n_s.name in here else {}
        numbers = {**self.request.numbers, **parts, "B_r": rows}
        return account(replace(self.request, numbers=numbers), schedule, None, self.options)

    def training(self, found: Account) -> tuple[sp.Expr, sp.Expr] | None:
        """HBM bytes live at once over the forward pass and *found* after it; ``None`` for a forward pass.

        Returns:
            Without, and with, buffers that gradients are added to.
        """
        before = plan(found.name).after
        if not before:
            return None
        given = Graph(found.derivation.start.given, self.request.variant.outputs)
        forward = plan(before).derive(given).schedule
        backward = found.derivation.schedule
        alone, accumulated = (Training(forward, backward, adds).peak.amount for adds in (False, True))
        return alone, accumulated

    def _account(self, request: Request, schedule: str, **options: object) -> Account:
        chosen = replace(self.options, **options)  # type: ignore[arg-type]
        return account(request, schedule, self.machine, chosen)

    @property
    def alike(self) -> dict[sp.Symbol, sp.Basic]:
        """Lengths that are one, as N."""
        return {s: n for s, n in self.shown.items() if s in (N_q, N_k)}

    @cached_property
    def shown(self) -> dict[sp.Symbol, sp.Basic]:
        """Replacements for printing: N for both lengths when they are one, b for widths that are not set apart."""
        request = self.request
        found: dict[sp.Symbol, sp.Basic] = {}
        if self.tied:
            found |= {N_q: N, N_k: N}
        apart = {"kv": ("b_kv",), "scores": ("b_s", "b_p"), "probs": ("b_p",), "stats": ("b_l",), "state": ("b_h",)}
        named = {name for group, names in apart.items() if group in request.types for name in names}
        return found | {symbol(n): b for n in ("b_kv", "b_s", "b_p", "b_l", "b_h") if n not in named}

r"""Balance: the useful pairs of the busiest device, and of the busiest device at every step, over the mean.

Closed forms hold for any number of devices. They come from positions written so that every sign is plain: device r with
r' devices behind it, R = r + 1 + r', and chunks of u tokens. What then still has a minimum or a maximum in it (a window, say)
is left to numbers, where each device is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import sympy as sp

from derive.density import Density
from derive.exact import Number, Values, value
from derive.extremes import floor_of
from derive.mask import Mask
from derive.parallel.shards import OWNER, READER, Shards, device_pairs, shard_pairs
from derive.symbols import R, dummy

_BEHIND, _BETWEEN, _U = dummy("r_b"), dummy("r_m"), dummy("u")
MOST_DEVICES = 64
"""Steps are asked device by device, R^2 questions, up to this many devices."""


@dataclass(frozen=True)
class Balance:
    """The work of R devices that each hold a share of the tokens.

    Attributes:
        mask: the mask of the whole sequence.
        queries, keys: its lengths.
        shards: who holds what.
    """

    mask: Mask | None
    queries: sp.Expr
    keys: sp.Expr
    shards: Shards

    @property
    def pairs(self) -> sp.Expr:
        """Pairs in all."""
        return self.queries * self.keys if self.mask is None else self.mask.pairs

    @property
    def mean(self) -> sp.Expr:
        """Pairs a device, on the mean."""
        return self.pairs / R

    @property
    def _chunk(self) -> tuple[sp.Expr, sp.Expr]:
        """Queries and keys of one chunk."""
        count = self.shards.pieces * R
        return self.queries / count, self.keys / count

    # --- closed forms -------------------------------------------------------------------------------------------------

    @cached_property
    def busiest(self) -> sp.Expr | None:
        """Pairs of the busiest device; ``None`` where it is not plainly the last one, or all are alike."""
        devices = READER + 1 + _BEHIND
        if self._is_uniform:
            return self.mean
        if not self._has_one_length:
            return None
        length = sp.expand(self.shards.pieces * devices * _U)
        found = sp.expand(device_pairs(self._mask_of(length), _U, length, self.shards, READER, devices))
        if found.has(sp.Min, sp.Max, sp.Sum, sp.floor, sp.ceiling):
            return None
        found = sp.expand(found.subs(_BEHIND, R - 1 - READER))
        step = sp.expand(found.subs(READER, READER + 1) - found)
        if step != 0 and floor_of(step) < 0:
            return None
        return self._in_tokens(found if step == 0 else found.subs(READER, R - 1))

    @cached_property
    def step(self) -> sp.Expr | None:
        """Pairs of the busiest device at any step but the first; ``None`` where that has no closed form."""
        if self._is_uniform:
            return self.mean / R
        below = self._between(OWNER + 1 + _BETWEEN, OWNER, OWNER + 2 + _BETWEEN + _BEHIND)
        above = self._between(READER, READER + 1 + _BETWEEN, READER + 2 + _BETWEEN + _BEHIND)
        if below is None or above is None:
            return None
        more = sp.expand(below - above)
        if floor_of(more) < 0 and floor_of(-more) < 0:
            return None
        return self._in_tokens(below if floor_of(more) >= 0 else above)

    @cached_property
    def lock_step(self) -> sp.Expr | None:
        """Pairs of the busiest device at each step, added up: what R devices that wait for each other spend."""
        if self._is_uniform:
            return self.mean
        own = self._between(READER, READER, READER + 1 + _BEHIND)
        if own is None or self.step is None:
            return None
        return self._in_tokens(own) + (R - 1) * self.step

    def _between(self, reader: sp.Expr, owner: sp.Expr, devices: sp.Expr) -> sp.Expr | None:
        """Pairs of one step in chunks of u tokens, when they do not depend on the device."""
        if not self._has_one_length:
            return None
        mask = self._mask_of(sp.expand(self.shards.pieces * devices * _U))
        found = sp.expand(shard_pairs(mask, (_U, _U), self.shards, reader, owner, devices))
        return found if found.free_symbols <= {_U} and not found.has(sp.Min, sp.Max, sp.Sum) else None

    @property
    def _is_uniform(self) -> bool:
        """Whether every shard has the same pairs with every other."""
        return self.mask is None or isinstance(self.mask, Density)

    @property
    def _has_one_length(self) -> bool:
        """Whether queries and keys are one open length, and the mask one interval: what closed forms are found for."""
        plain = self.mask is not None and self.mask.is_one_interval
        return plain and self.queries == self.keys and bool(self.queries.is_Symbol)

    def _mask_of(self, length: sp.Expr) -> Mask:
        """The mask with the sequence's length written as *length*."""
        assert self.mask is not None
        first, last = (_put(x, {self.queries: length}) for x in (self.mask.first, self.mask.last))
        return replace(self.mask, rows=length, columns=length, first=first, last=last)

    def _in_tokens(self, amount: sp.Expr) -> sp.Expr:
        return sp.factor(amount.subs(_U, self.queries / (self.shards.pieces * R)))

    def ratio(self, amount: sp.Expr | None) -> sp.Expr | None:
        """*amount* over the mean, as one fraction."""
        return None if amount is None else sp.factor(sp.cancel(amount / self.mean))

    def limit(self, amount: sp.Expr | None) -> sp.Expr | None:
        """*amount* over the mean as the sequence grows at a fixed number of devices."""
        found = self.ratio(amount)
        if found is None or not found.has(self.queries):
            return found
        above, below = (sp.Poly(part, self.queries) for part in sp.fraction(sp.together(found)))
        return sp.cancel(above.LC() / below.LC()) if above.degree() == below.degree() else None

    # --- numbers ------------------------------------------------------------------------------------------------------

    def by_device(self, values: Values) -> tuple[Number, ...]:
        """Pairs of each device.

        Raises:
            UnboundError: a symbol has no value.
        """
        amount = device_pairs(self.mask, self._chunk[0], self.keys, self.shards)
        return tuple(value(amount, {**values, READER.name: r}) for r in range(int(values[R.name])))

    def by_step(self, values: Values) -> tuple[tuple[Number, ...], ...] | None:
        """Pairs of each device at each step, device r working on the keys of device r - t; ``None`` beyond 64 devices.

        Raises:
            UnboundError: a symbol has no value.
        """
        devices = int(values[R.name])
        if devices > MOST_DEVICES:
            return None
        amount = shard_pairs(self.mask, self._chunk, self.shards)
        return tuple(
            tuple(value(amount, {**values, READER.name: r, OWNER.name: (r - t) % devices}) for r in range(devices))
            for t in range(devices)
        )


def imbalance(pairs: tuple[Number, ...]) -> Fraction:
    """The largest of *pairs* over their mean; 1 where there are none."""
    return Fraction(max(pairs) * len(pairs)) / sum(pairs) if sum(pairs) else Fraction(1)


def lock_step_imbalance(steps: tuple[tuple[Number, ...], ...]) -> Fraction:
    """The sum of each step's largest over the mean of the devices' sums; 1 where there are none."""
    mean = Fraction(sum(map(sum, steps)), len(steps))
    return Fraction(sum(map(max, steps))) / mean if mean else Fraction(1)


def _put(bound: sp.Expr | None, replacements: dict[sp.Expr, sp.Expr]) -> sp.Expr | None:
    return None if bound is None else sp.expand(bound.subs(replacements))

"""The cache of keys and values of a stack of layers, as closed forms and numbers: bytes of a length, length of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.cache import Layers, Stack, kept_tokens, token_bytes, token_elements
from derive.errors import BadValueError, DomainError, UnboundError
from derive.exact import Number, value
from derive.masks import Pattern
from derive.symbols import MEANINGS, C_kv, L, L_w, R, b, b_kv, h, n_page
from outputs.bisection import last_that_holds
from outputs.devices import Division
from outputs.layout import Section
from outputs.notation import put, text, tidy
from outputs.quantities import grouped, significant, size
from outputs.request import LARGEST
from rules.parallel import scheme

if TYPE_CHECKING:
    from derive.parallel.link import Device
    from outputs.request import Request

EVERYTHING = ("full", "causal")
"""Masks under which a layer keeps every token."""
SHARED_BY = "tensor-parallel"
"""How several devices share a cache: each holds the heads that its query heads use."""


@dataclass(frozen=True)
class KvCache:
    """A cache at the numbers that were given.

    Attributes:
        request: what was asked; its numbers may hold ``L``, ``L_w`` and ``R``.
        budget: bytes that the cache may take, if that was asked.

    Raises:
        BadValueError: more windowed layers than layers, or windowed layers without a window.
        DomainError: there is nothing to cache, or a mask under which no cache of one form is kept.
    """

    request: Request
    budget: int | None = None

    def __post_init__(self) -> None:
        layers, windowed = (self.request.numbers.get(s.name) for s in (L, L_w))
        if windowed and layers is not None and windowed > layers:
            raise BadValueError(f"windowed={windowed} of layers={layers}: no more layers see a window than there are")
        if windowed and self._keeps_everything:
            raise BadValueError(
                f"windowed={windowed} with mask={self.request.mask}, under which a layer keeps everything; "
                "leave mask out, or give mask=window W=1024 or mask=sinks"
            )
        if self.division is not None and (why := self.division.refusal()) is not None:
            raise BadValueError(why)
        _ = self.stack

    @property
    def _keeps_everything(self) -> bool:
        return self.request.mask in EVERYTHING

    @cached_property
    def division(self) -> Division | None:
        """The devices that share the cache, when there are several."""
        devices = self.request.numbers.get(R.name)
        return None if devices in (None, 1) else Division(self.request, scheme(SHARED_BY))

    @property
    def _device(self) -> Device | None:
        return None if self.division is None else self.division.device

    @cached_property
    def elements(self) -> dict[str, sp.Expr]:
        """Elements of a token in a layer, by cached tensor."""
        return dict(token_elements(self.request.variant.graph(Pattern()), self._device))

    @cached_property
    def stack(self) -> Stack:
        """The layers: those that keep everything, and those under the mask that was given; all of them unless told."""
        token = token_bytes(self.request.variant.graph(Pattern()), self._device)
        if self._keeps_everything:
            return Stack((Layers(L, token),))
        kept = kept_tokens(self.request.pattern)
        if L_w.name not in self.request.numbers and L_w.name not in self.request.open:
            return Stack((Layers(L, token, kept),))
        return Stack((Layers(L - L_w, token), Layers(L_w, token, kept)))

    # --- values -------------------------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> dict[str, Number]:
        """Value by symbol name; N is the length of the cache."""
        found: dict[str, Number] = {**self.request.widths, **self.request.numbers}
        if "N_k" in found:
            found["N"] = found["N_k"]
        if self.budget is not None:
            found[C_kv.name] = self.budget
        return found

    def shown(self, amount: sp.Expr) -> sp.Expr:
        """*amount* as it is printed."""
        widths = {} if "kv" in self.request.types else {b_kv: b}
        found = put(self._stated(amount), widths)
        return found if found.has(sp.Piecewise, sp.Min, sp.Max) else sp.factor(found)

    def _stated(self, amount: sp.Expr) -> sp.Expr:
        return self.request.stated(amount, (h,) if self.division is not None else ())

    def number(self, amount: sp.Expr, **other: int) -> Number | None:
        """The exact value of *amount*; ``None`` while a symbol is open."""
        try:
            return value(self._stated(amount), {**self.values, **other})
        except UnboundError:
            return None

    @property
    def is_paged(self) -> bool:
        """Whether a size of pages was given, or left open."""
        return n_page.name in self.request.numbers or n_page.name in self.request.open

    @property
    def allocated(self) -> sp.Expr:
        """Bytes that the cache takes up: those of its pages, or its own."""
        return self.stack.allocated if self.is_paged else self.stack.bytes

    @property
    def paged(self) -> tuple[tuple[str, sp.Expr], ...]:
        """What pages add: bytes allocated, the share of them that holds tokens, bytes of the table, and the table's share."""
        if not self.is_paged:
            return ()
        allocated, table = self.stack.allocated, self.stack.table
        return (
            ("allocated", allocated),
            ("used", self.stack.bytes / allocated),
            ("table", table),
            ("table_share", table / self.stack.bytes),
        )

    @cached_property
    def longest_form(self) -> sp.Expr | None:
        """The longest N that fits C_kv, as a closed form; ``None`` where it is found by search, as in pages."""
        if self.is_paged:
            return None
        try:
            return self.stack.longest
        except DomainError:
            return None

    @cached_property
    def longest(self) -> int | float | None:
        """The longest N that fits the budget, 0 where none does, infinite where any does; ``None`` while a symbol is open."""
        if self.budget is None or self.number(self.allocated, N=1) is None:
            return None

        def fits(length: int) -> bool:
            return (self.number(self.allocated, N=length) or 0) <= (self.budget or 0)

        return float("inf") if fits(LARGEST) else (last_that_holds(fits, 0, LARGEST) or 0)

    @property
    def slopes(self) -> tuple[tuple[str, sp.Expr], ...]:
        """Bytes that one more token costs: in all layers, and past each window."""
        found = [("bytes a token", self.stack.slope())]
        try:
            windows = self.stack.windows
        except DomainError:
            windows = ()
        return (*found, *((f"past {text(self.shown(w))} tokens", self.stack.slope(w)) for w in windows))


def report(cache: KvCache) -> list[Section]:
    """The cache as text."""
    request = cache.request
    numbers = {MEANINGS[name].key: n for name, n in request.numbers.items() if name != "N_q"}
    given = "  ".join(
        f"{'N' if key == 'Nk' else key} = {grouped(n)}" for key, n in numbers.items() if isinstance(n, int)
    )
    where = "on one of the devices" if cache.division is not None else "in all"
    lines = [
        f"{request.variant.name}, cache of keys and values {where}: {given}  {request.types.get('kv', request.operand).name}"
    ]
    for name, amount in cache.elements.items():
        lines.append(_line(cache, f"elements of {name} a token and layer", amount, grouped))
    lines += [_line(cache, what, amount, _bytes) for what, amount in cache.slopes]
    lines.append(_line(cache, "bytes of B sequences of N tokens", cache.stack.bytes, _bytes))
    lines += [_line(cache, _PAGED[what], amount, _share if what in _SHARES else _bytes) for what, amount in cache.paged]
    if cache.longest_form is not None:
        lines.append(f"longest N in C_kv bytes = {text(cache.shown(cache.longest_form))}")
    if cache.longest is not None and cache.budget is not None:
        lines.append(f"longest N in {size(cache.budget)}: {_length(cache.longest)}")
    return [Section("", lines)]


def _length(longest: int | float) -> str:
    if longest == 0:
        return "none: one token does not fit"
    return "any: every layer keeps a window alone" if longest == float("inf") else f"{grouped(longest)} tokens"


_PAGED = {
    "allocated": "bytes of the pages that are allocated for them, part of the last empty (reads stop at N)",
    "used": "share of the allocated bytes that holds tokens",
    "table": "bytes of the page tables, read beside the keys and values by each step",
    "table_share": "of the bytes of keys and values that is",
}
_SHARES = ("used", "table_share")


def _line(cache: KvCache, what: str, amount: sp.Expr, printed: Any) -> str:
    number = cache.number(amount)
    form = text(tidy(cache.shown(amount)))
    rounded = number if number is None or printed is _share else -(-number // 1)
    return f"{what} = {form}" + ("" if rounded is None or form == str(number) else f" = {printed(rounded)}")


def _share(number: Number) -> str:
    return f"{significant(100 * number)} %"


def _bytes(number: Number) -> str:
    return f"{size(number)} ({grouped(number)} B)" if number >= 1024 else size(number)


def as_json(cache: KvCache) -> dict[str, Any]:
    """The object that ``derive cache --json`` prints; see ``schema/cache.json``."""
    request, longest = cache.request, cache.longest
    return {
        "variant": request.variant.name,
        "mask": request.mask,
        "dtype": {group: t.name for group, t in request.types.items()},
        "parameters": {n: x if isinstance(x, int) else str(x) for n, x in request.numbers.items()},
        "elements_a_token_and_layer": {name: _amount(cache, amount) for name, amount in cache.elements.items()},
        "bytes_a_token": [{"where": where, **_amount(cache, amount)} for where, amount in cache.slopes],
        "bytes": _amount(cache, cache.stack.bytes),
        "paged": _paged(cache),
        "longest": {
            "symbolic": None if cache.longest_form is None else str(cache.shown(cache.longest_form)),
            "budget": cache.budget,
            "value": None if longest in (None, float("inf")) else longest,
            "unbounded": longest == float("inf"),
        },
    }


def _paged(cache: KvCache) -> dict[str, Any] | None:
    if not cache.is_paged:
        return None
    found = {}
    for what, amount in cache.paged:
        number = cache.number(amount) if what in _SHARES else None
        share = {"symbolic": str(cache.shown(amount)), "value": None if number is None else float(number)}
        found[what] = share if what in _SHARES else _amount(cache, amount)
    return found


def _amount(cache: KvCache, amount: sp.Expr) -> dict[str, Any]:
    number = cache.number(amount)
    return {"symbolic": str(cache.shown(amount)), "value": None if number is None else int(-(-number // 1))}

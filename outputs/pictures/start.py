"""A question at numbers: what it left open gets a number to begin with, and every answer then has a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING

from derive.symbols import C_L2, FRACTIONS, MAY_BE_ZERO, MEANINGS, C_k, N, N_k, N_q, symbol
from outputs.pictures.amounts import symbols_of
from rules.derivations import plan

if TYPE_CHECKING:
    import sympy as sp

    from derive.exact import Number
    from outputs.account import Account
    from outputs.explanation import Explanation

_FIRST: Mapping[str, int] = {
    "N_q": 8192, "N_k": 8192, "d": 128, "d_v": 128, "h": 32, "h_k": 8, "B": 1, "M": 2**16, "C": 2**7, "C_L2": 2**25, "n_L2": 1,
    "B_r": 128, "B_c": 128, "B_d": 64, "W": 1024, "W_l": 512, "W_r": 512, "C_k": 1024, "N_p": 512, "N_s": 4, "N_g": 64,
    "n_d": 4,
}  # fmt: skip
"""Round numbers to begin with; none is a machine's."""
_OTHERWISE = 64
_CHUNK = 64
"""Tokens of a recurrence's chunk, whose scores stay on chip; a mask's chunks are longer."""
_SHARE = Fraction(1, 8)
_WIDTHS: tuple[Number, ...] = (Fraction(1, 2), 1, 2, 4)
_SHARES: tuple[Number, ...] = tuple(Fraction(1, 2**n) for n in range(10, -1, -1))
_LARGEST: Mapping[str, int] = {"d": 2**10, "d_v": 2**10, "h": 2**8, "h_k": 2**8, "B": 2**12, "C": 2**12, "C_L2": 2**33}
"""Where a slider ends; others end at 2^20."""


@dataclass(frozen=True)
class Slider:
    """A number that a reader may change.

    Attributes:
        symbol: its symbol, as printed.
        schedule: the schedule whose own it is; empty where all schedules have it in common.
        value: the number to begin with.
        steps: the numbers it moves through.
        given: whether the question or the machine gave the number.
    """

    symbol: str
    schedule: str
    value: Number
    steps: tuple[Number, ...]
    given: bool

    @property
    def key(self) -> str:
        """A name of its own."""
        return f"{self.schedule}:{self.symbol}" if self.schedule else self.symbol


@dataclass(frozen=True)
class Start:
    """A question with a number for every symbol.

    Attributes:
        asked: the question as it was asked.
        answer: the same with the numbers that it lacked.
        chosen: those numbers, by symbol.
    """

    asked: Explanation
    answer: Explanation
    chosen: Mapping[str, Number]

    def values(self, account: Account) -> dict[str, Number]:
        """The numbers of one schedule, by the names that are printed."""
        found = dict(account.values)
        length = next((s.name for s in (N_k, N_q) if s.name in found), None)
        if self.answer.tied and length is not None:
            found[N.name] = found[length]
        return found

    def sliders(self, used: Mapping[str, frozenset[str]]) -> tuple[Slider, ...]:
        """One for each symbol in *used* (symbols by schedule); one a schedule where each has a number of its own."""
        found: dict[str, Slider] = {}
        accounts = {a.name: self.values(a) for a in self.answer.accounts}
        fixed = {N.name, N_q.name, N_k.name} if self.answer.request.pattern.length is not None else set()
        order = {name: n for n, name in enumerate((N.name, *MEANINGS))}
        for name in sorted({name for symbols in used.values() for name in symbols}, key=order.__getitem__):
            numbers = {s: accounts[s][name] for s, symbols in used.items() if name in symbols}
            if name in fixed:
                continue
            alone = len(set(numbers.values())) > 1
            for schedule, number in numbers.items() if alone else [("", next(iter(numbers.values())))]:
                chosen = {N_q.name, N_k.name} & set(self.chosen) if name == N.name else {name} & set(self.chosen)
                slider = Slider(name, schedule, number, _steps(name, number), not chosen)
                found[slider.key] = slider
        return tuple(found.values())


def start(asked: Explanation) -> Start:
    """*asked* with a number for every symbol: those that a reader would try first.

    Raises:
        InfeasibleError: at these numbers the tiles do not fit the machine.
    """
    numbers: dict[str, Number] = {}
    needed = {s.name for account in asked.accounts for s in _symbols(account)} | {"M"}
    given = {**asked.accounts[0].values, **asked.request.numbers}
    tiles = {
        s.name
        for a in asked.accounts
        for k in a.derivation.schedule.kernels
        for x in k.loops
        for s in x.tile.free_symbols
    }
    own = {s.name for s in asked.request.variant.symbols}
    for name in sorted(needed - set(given) - tiles):
        numbers[name] = _CHUNK if name == C_k.name and name in own else _first(name)
    parts = (
        pair for a in asked.accounts for pair in plan(a.name).divides
    )  # a schedule's own, such as its splits of the keys
    for small, large in (*asked.request.variant.divides, *parts):
        if large.name in numbers:
            numbers[large.name] = lcm(int(numbers[large.name]), int(given.get(small.name, numbers.get(small.name, 1))))
        elif small.name in numbers and large.name in given:
            numbers[small.name] = gcd(int(numbers[small.name]), int(given[large.name]))
    answer = _with(asked, numbers)
    left = {s.name for a in answer.accounts for s in _symbols(a) if s.name not in a.values}
    if left:  # tiles whose usual size no number decides
        numbers |= {name: _first(name) for name in sorted(left)}
        answer = _with(asked, numbers)
    return Start(asked, answer, numbers)


def _with(asked: Explanation, numbers: Mapping[str, Number]) -> Explanation:
    request = replace(asked.request, numbers={**asked.request.numbers, **numbers}, tied=asked.tied)
    return replace(asked, request=request)


def _symbols(account: Account) -> frozenset[sp.Symbol]:
    """What the amounts of *account* depend on."""
    amounts = [account.compulsory.total.amount, account.sm.total.amount, account.dram.total.amount, account.memory_peak]
    amounts += [*account.executed.values(), *account.useful.values()]
    amounts += [amount for amount in (account.footprint, account.live_bytes) if amount is not None]
    if account.live_bytes is not None:
        amounts.append(C_L2)
    return symbols_of(amounts)


def _first(name: str) -> Number:
    if name in FRACTIONS:
        return _SHARE
    if not symbol(name).is_integer:
        return 2
    return _FIRST.get(name, _OTHERWISE)


def _steps(name: str, number: Number) -> tuple[Number, ...]:
    """Powers of two and half-way between, *number* among them; few widths, and shares."""
    if name in FRACTIONS:
        return tuple(sorted({*_SHARES, number}))
    if name != N.name and not symbol(name).is_integer:
        return tuple(sorted({*_WIDTHS, number}))
    largest = max(_LARGEST.get(name, 2**20), int(number))
    powers = [2**n for n in range(largest.bit_length()) if 2**n <= largest]
    between = [3 * p // 2 for p in powers if p > 1 and 3 * p // 2 <= largest]
    least = [0] if name in MAY_BE_ZERO else []
    return tuple(sorted({*least, *powers, *between, int(number)}))

"""GB/s beside a profile: what a benchmark would read, what the counters say, and what the model reaches.

A benchmark divides the bytes that must be touched by a time. Where they fit the L2 and runs repeat without a flush, nothing
comes from DRAM and the quotient is the L2's. Sources: https://github.com/NVIDIA/TileGym/pull/118 (64 MiB in an L2 of 129 MB
read 1.6 times too fast, 128 MiB 1.06 times, 256 MiB not); FlashInfer's benchmarks rotate buffers that fill 5 times the L2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from derive.errors import UnboundError
from derive.exact import value
from outputs.quantities import size

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.confront.profile_csv import Profile

ROTATE = 5
"""Buffers of a benchmark together fill the L2 so many times before none is found in it."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """One quotient.

    Attributes:
        what: which bytes over which time.
        bytes: bytes.
        seconds: time.
        says: what is wrong with it; empty where nothing is.
    """

    what: str
    bytes: Fraction
    seconds: Fraction
    says: str = ""

    @property
    def rate(self) -> Fraction:
        """Bytes a second."""
        return self.bytes / self.seconds


def bandwidths(account: Account, profile: Profile) -> tuple[Bandwidth, ...]:
    """The quotients that can be made of *profile*; none without a time."""
    seconds = profile.counters.get("seconds")
    if not seconds:
        return ()
    found: list[Bandwidth] = []
    try:
        touched = Fraction(value(account.compulsory.total.amount, account.values))
    except UnboundError:
        return ()
    as_benchmark = Bandwidth("benchmark: bytes touched / measured time", touched, seconds)
    found.append(replace(as_benchmark, says=_why(account, as_benchmark)))
    counted = profile.counters.get("dram", _sum(profile))
    if counted:
        found.append(Bandwidth("counters: DRAM bytes / measured time", counted, seconds))
    if account.seconds:
        moved = Fraction(value(account.dram.total.amount, account.values))
        found.append(Bandwidth("modelled: DRAM bytes / least time", moved, Fraction(account.seconds)))
    return (*found, *filter(None, (_warm(account, touched),)))


def _sum(profile: Profile) -> Fraction | None:
    """DRAM bytes read and written, where both were counted."""
    parts = [profile.counters.get(name) for name in ("dram read", "dram write")]
    return None if None in parts else sum((p for p in parts if p is not None), Fraction(0))


def peak(account: Account) -> Fraction | None:
    """The machine's DRAM rate in B/s."""
    rate = account.rate("dram")
    return None if rate is None else rate.value


def _why(account: Account, found: Bandwidth) -> str:
    limit, room = peak(account), account.values.get("C_L2")
    if limit is None or found.rate <= limit:
        return ""
    if room is None:
        return "above the DRAM peak"
    words = f"above the DRAM peak: {size(found.bytes)} against an L2 of {size(room)}"
    if found.bytes > ROTATE * room:
        return f"{words}, too much for a cache to explain: other sizes were measured"
    finds = "all of it" if found.bytes <= room else "part of it"
    rotate = f"rotate buffers of {ROTATE} x L2 = {size(ROTATE * room)}"
    return f"warm cache, {words}, where a repeat finds {finds}; flush, or {rotate}"


def _warm(account: Account, touched: Fraction) -> Bandwidth | None:
    """What a repeat without a flush would read if all it touches were in the L2: no pipe but DRAM's is spared."""
    room, l2 = account.values.get("C_L2"), account.times.get("l2")
    if room is None or touched > room or not l2:
        return None
    least = max(t for level, t in account.times.items() if level != "dram" and t is not None)
    says = "nothing from DRAM: the working set fits the L2, and the rate is not the DRAM's"
    return Bandwidth("warm repeat, modelled: bytes touched / least time", touched, Fraction(least), says)

"""What the engine expects of each counter, under each reading of the cache, and what explains the gap to a measurement.

Readings are the one formula of HBM bytes at three sizes of the L2: so large that everything live stays (resident), just so
large that CTAs in step share the tiles they stream (waves), and none (no reuse). Two more are of lines: DRAM bytes are lines
touched times the size of a line (https://github.com/ROCm/hip-ep/pull/675), so that rows shorter than a line, apart from each
other, count as whole ones (whole lines), and loads of half a line, whose other half is gone before it is asked for, count
twice (half lines).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log
from typing import TYPE_CHECKING

from derive.errors import UnboundError
from derive.exact import Number, value
from outputs.confront.profile_csv import Profile

if TYPE_CHECKING:
    from derive.cost import Moves
    from outputs.account import Account

RESIDENT, WAVES, NO_REUSE, MODELLED = "resident", "waves", "no reuse", "at this L2"
WHOLE_LINES, HALF_LINES = "whole lines", "half lines"
_EVERYTHING = 10**30
CLOSE = Fraction(1, 10)
"""Relative gap up to which a reading is said to fit."""


@dataclass(frozen=True)
class Line:
    """One counter.

    Attributes:
        counter: its name.
        measured: bytes, seconds or a share.
        expected: the same from the engine.
        assumption: what explains the gap; empty where there is none to speak of.
    """

    counter: str
    measured: Fraction
    expected: Fraction
    assumption: str

    @property
    def ratio(self) -> float | None:
        """Measured over expected."""
        return float(self.measured / self.expected) if self.expected else None

    @property
    def residual(self) -> Fraction:
        """Measured less expected."""
        return self.measured - self.expected


@dataclass(frozen=True)
class Confrontation:
    """A profile beside one schedule.

    Attributes:
        account: the schedule at numbers, perhaps on a machine.
        profile: what was measured.
    """

    account: Account
    profile: Profile

    @cached_property
    def readings(self) -> Mapping[str, tuple[Number, Number]]:
        """HBM bytes read and written under each reading; one whose symbols are open is left out."""
        found = {}
        for name, room in self._rooms():
            at = self.account.values if room is None else {**self.account.values, "C_L2": room}
            try:
                found[name] = _both(self.account.dram, at)
            except UnboundError:
                continue
        if (line := self._line) is not None and RESIDENT in found:
            read, written = found[RESIDENT]
            apart = read_in_lines(self.account, line)
            if apart >= read * (1 + CLOSE):
                found[WHOLE_LINES] = apart, written
            found[HALF_LINES] = 2 * read, written
        return found

    @property
    def _line(self) -> int | None:
        """Bytes of the machine's cache line, where it states one."""
        stated = self.account.machine.get("cache_line") if self.account.machine is not None else None
        return None if stated is None else int(stated.value)

    def _rooms(self) -> Iterator[tuple[str, Number | None]]:
        """The size of the L2 in each reading; ``None`` is the machine's own."""
        yield RESIDENT, _EVERYTHING
        shared = self.account.sharing[1] if self.account.sharing is not None else None
        if shared is not None:
            try:
                step = value(shared.live * shared.step_bytes + shared.beside + shared.others, self.account.values)
                if step < value(shared.live_bytes, self.account.values):
                    yield WAVES, step
            except UnboundError:
                pass
        yield NO_REUSE, 0
        if "C_L2" in self.account.values:
            yield MODELLED, None

    @cached_property
    def fits(self) -> str | None:
        """The reading nearest to what was measured, as far as one lies within a tenth; ``None`` where none does."""
        counter = next((c for c in ("dram read", "dram") if self.profile.counters.get(c)), None)
        if counter is None:
            return None
        measured = self.profile.counters[counter]
        gaps = {n: abs(log(measured / e)) for n in self.readings if n != MODELLED and (e := self._dram(n, counter)) > 0}
        best = min(gaps, key=lambda n: gaps[n], default=None)
        return best if best is not None and gaps[best] <= log(1 + CLOSE) else None

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Every counter that was measured and is expected."""
        return tuple(
            Line(counter, measured, expected, self._why(counter, measured, expected))
            for counter, measured in self.profile.counters.items()
            if (expected := self.expected(counter)) is not None
        )

    def expected(self, counter: str) -> Fraction | None:
        """What the engine expects of *counter*: at this L2 where the machine is known, else in the reading that fits."""
        reading = MODELLED if MODELLED in self.readings else self.fits or RESIDENT
        if counter.startswith("dram"):
            return self._dram(reading, counter)
        if counter.startswith("l2"):
            try:
                read, written = _both(self.account.sm, self.account.values)
            except UnboundError:
                return None
            return Fraction({"l2": read + written, "l2 read": read, "l2 write": written}[counter])
        if counter == "hit rate":
            return None if self.account.hit_rate is None else Fraction(self.account.hit_rate)
        return None if self.account.seconds is None else Fraction(self.account.seconds)

    def _dram(self, reading: str, counter: str) -> Fraction:
        read, written = self.readings[reading]
        return Fraction({"dram read": read, "dram write": written, "dram": read + written}[counter])

    def _why(self, counter: str, measured: Fraction, expected: Fraction) -> str:
        if abs(measured - expected) <= CLOSE * expected:
            return ""
        more = measured > expected
        if counter in ("dram", "dram read"):
            return self._why_dram(counter, measured, more)
        return _ASSUMPTIONS.get((counter, more), "")

    def _why_dram(self, counter: str, measured: Fraction, more: bool) -> str:
        parts = self.profile.counters.get("dram read")
        if (
            counter == "dram"
            and parts is not None
            and not self._why("dram read", parts, self.expected("dram read") or parts)
        ):
            return "the gap is in what was written: reads agree"
        least = self._dram(RESIDENT, counter)
        if measured < least * (1 - CLOSE):
            return "less than must be touched once: the cache was warm (flush it between runs), or other sizes were measured"
        if measured > self._dram(NO_REUSE, counter) * (1 + CLOSE) and self.fits is None:
            return "more than every SM-side read: another kernel is counted, tensors are wider, or tiles smaller than given"
        if self.fits in (WHOLE_LINES, HALF_LINES):
            return _LINES[self.fits].format(line=self._line)
        if self.fits is not None:
            return f"the model assumes CTAs in step and an LRU cache; the reading that fits is: {self.fits}"
        drift = (
            "CTAs drift apart, so some re-reads miss"
            if more
            else "part of what does not fit stays: the cache is no LRU"
        )
        return f"between two readings: {drift}"


def read_in_lines(account: Account, line: int) -> Number:
    """Bytes read from HBM once each where every row of a tensor starts a line of *line* bytes: lines touched x line.

    A row is what differs in the last index alone. Where heads lie between rows, the rest of its last line is no other row's.

    Raises:
        UnboundError: a size has no value.
    """
    total: Number = 0
    at = {**account.values, "C_L2": _EVERYTHING}
    tensors = account.derivation.schedule.graph.tensors
    for name, move in account.dram.by_tensor.items():
        tensor = tensors[name]
        row = Fraction(value(tensor.indices[-1].extent * tensor.width, at)) if tensor.indices else Fraction(line)
        total += value(move.read, at) * Fraction(-(-row // line) * line) / row
    return total


_LINES: Mapping[str, str] = {
    WHOLE_LINES: "rows are shorter than a line of {line} B and lie apart: lines touched x {line} B were read, not elements",
    HALF_LINES: "twice what is needed, as where a load uses half of a line of {line} B and the rest is evicted before its use",
}


_ASSUMPTIONS: Mapping[tuple[str, bool], str] = {
    (
        "dram write",
        False,
    ): "the model writes all lines back; the last ones may still sit in the L2 when the counter is read",
    (
        "dram write",
        True,
    ): "the model writes each result once: intermediates, partial sums or another kernel are in the counts",
    (
        "l2",
        True,
    ): "the model counts whole tiles; lts counters add traffic between L2 partitions and wasted sectors",
    ("l2", False): "the model sends every tile load to the L2; multicast, or hits in L1, spare some",
    (
        "l2 read",
        True,
    ): "the model counts whole tiles; lts counters add traffic between L2 partitions and wasted sectors",
    ("l2 read", False): "the model sends every tile load to the L2; multicast, or hits in L1, spare some",
    ("l2 write", True): "the model writes results once: spills to local memory or partial sums are in the counts",
    (
        "l2 write",
        False,
    ): "the model writes every result through the L2; fewer bytes were written: another shape or type",
    ("hit rate", True): "the model counts requests of whole tiles; more hits mean more re-reads than the schedule has",
    (
        "hit rate",
        False,
    ): "the model's CTAs run in step; CTAs that drift apart miss, and so does a cache shared with other work",
    ("seconds", True): "the time is a lower bound at peak rates: latency, occupancy, launch and clocks are not in it",
    (
        "seconds",
        False,
    ): "faster than the peak rates allow: other sizes, masked work skipped, or a machine with higher clocks",
}
"""By counter, and whether more was measured than expected: the assumption of the model that the gap breaks."""


def _both(moves: Moves, at: Mapping[str, Number]) -> tuple[Number, Number]:
    return value(moves.read.amount, at), value(moves.write.amount, at)

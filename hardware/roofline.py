"""Work on a machine as time: each pipe works alone and all at once, so the slowest one sets the time.

Source: Williams, Waterman & Patterson 2009, doi:10.1145/1498765.1498785; the exponential unit as a roof of its own
after Shah et al. 2024, arXiv:2407.08608, section 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, get_args

import sympy as sp

from derive.errors import BadValueError, DomainError, UnboundError, UnknownNameError
from derive.exact import Number, Values, value
from hardware.constant import Constant
from hardware.machine import Machine

Pipe = Literal["mma", "exp", "vector", "convert", "shared", "l2", "dram"]
PIPES: tuple[Pipe, ...] = get_args(Pipe)
"""Matrix units, exponential units, vector units, conversion from a narrow type, shared memory, L2 to the SMs, DRAM."""

_FLOP_PER_VECTOR_OP = 2
"""A datasheet counts the fused multiply-add of one lane as two FLOP."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel does, a closed form or a number for each pipe; None where it is not stated.

    Attributes:
        mma: FLOP on the matrix units, two for a multiply-add.
        exp: exponentials.
        vector: vector operations, one for a fused multiply-add.
        convert: elements converted from a narrow type.
        shared: bytes that cross shared memory.
        l2: bytes between L2 and the SMs.
        dram: bytes between DRAM and L2.
    """

    mma: sp.Expr | int | None = None
    exp: sp.Expr | int | None = None
    vector: sp.Expr | int | None = None
    convert: sp.Expr | int | None = None
    shared: sp.Expr | int | None = None
    l2: sp.Expr | int | None = None
    dram: sp.Expr | int | None = None

    def __post_init__(self) -> None:
        """Refuses what is not exact, above all text, which SymPy would evaluate."""
        for pipe in PIPES:
            amount = getattr(self, pipe)
            if isinstance(amount, bool) or not (amount is None or isinstance(amount, int | sp.Expr)):
                raise BadValueError(f"work on {pipe} is {amount!r}: give an int or a SymPy expression")
            if amount is not None and (amount < 0 if isinstance(amount, int) else amount.is_negative):
                raise BadValueError(f"work on {pipe} is {amount}: work is not negative")


@dataclass(frozen=True, slots=True)
class Rate:
    """What a pipe does in a second.

    Attributes:
        value: exact.
        unit: FLOP/s, op/s or B/s.
        how: how it was obtained, in words with the numbers.
        kind: that of the constant, or ``derived`` from several.
    """

    value: Fraction
    unit: str
    how: str
    kind: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """Some work on some machine.

    Attributes:
        machine: where.
        dtype: type of the matrix operands.
        rates: by pipe; None where the machine's is unknown.
        times: seconds by pipe, exact; None where the rate is unknown or no work is stated.
    """

    machine: Machine
    dtype: str
    rates: Mapping[Pipe, Rate | None]
    times: Mapping[Pipe, sp.Expr | None]

    def bound(self, values: Values) -> Pipe:
        """The pipe that takes longest where symbols have *values*; the first of ``PIPES`` on a tie.

        Raises:
            UnboundError: a symbol has no value, or no pipe has a known time.
        """
        seconds = self._known(values)
        return max(seconds, key=lambda pipe: seconds[pipe])

    def seconds(self, values: Values) -> Number:
        """The time of the slowest pipe, exact; a lower bound, as is every pipe of unknown rate left out.

        Raises:
            UnboundError: a symbol has no value, or no pipe has a known time.
        """
        return max(self._known(values).values())

    def crossover(self, symbol: sp.Symbol, pipe_a: Pipe, pipe_b: Pipe) -> tuple[sp.Expr, ...]:
        """Positive real values of *symbol* at which two pipes take the same time, in SymPy's order.

        Empty where they never meet, or are equal throughout. Whole numbers are not asked for, even of an integer
        symbol: the crossing lies between two of them.

        Raises:
            BadValueError: *symbol* is not a symbol.
            UnknownNameError: the time of one of the pipes is unknown.
            DomainError: the times, say with a ``ceiling`` in them, cannot be solved for *symbol*.
        """
        if not isinstance(symbol, sp.Symbol):
            raise BadValueError(f"times cross in a SymPy symbol, not in {symbol!r}")
        free = sp.Dummy(symbol.name, positive=True)
        difference = (self._time(pipe_a) - self._time(pipe_b)).subs(symbol, free)
        try:
            roots = sp.solve(difference, free)
        except NotImplementedError as error:
            raise DomainError(f"{pipe_a} and {pipe_b} have no closed crossover in {symbol}: {error}") from error
        return tuple(root for root in roots if root.is_positive is not False)

    def _time(self, pipe: Pipe) -> sp.Expr:
        time = self.times[pipe]
        if time is None:
            why = "its rate is unknown" if self.rates[pipe] is None else "no work is stated for it"
            raise UnknownNameError(f"{self.machine.id}: {pipe} has no time, as {why}")
        return time

    def _known(self, values: Values) -> dict[Pipe, Number]:
        seconds = {pipe: value(time, values) for pipe, time in self.times.items() if time is not None}
        if not seconds:
            raise UnboundError(f"{self.machine.id}: no pipe has a known time; state work for one of {', '.join(PIPES)}")
        return seconds


def roofline(work: Work, machine: Machine, dtype: str, narrow: str = "") -> Roofline:
    """The time of each pipe of *machine* for *work* with matrix operands of *dtype*, some converted from *narrow*.

    Raises:
        UnknownNameError: the machine has no rate for *dtype*.
    """
    rates = {pipe: rate(machine, pipe, narrow if pipe == "convert" else dtype) for pipe in PIPES}
    times = {pipe: _seconds(getattr(work, pipe), rates[pipe]) for pipe in PIPES}
    return Roofline(machine, dtype, MappingProxyType(rates), MappingProxyType(times))


def ridge(machine: Machine, dtype: str) -> Fraction:
    """FLOP per byte of DRAM at which matrix units and DRAM take the same time.

    Raises:
        UnknownNameError: the machine has no rate for *dtype*.
    """
    return machine.peak(dtype).value / machine["dram_bandwidth"].value


def rate(machine: Machine, pipe: Pipe, dtype: str) -> Rate | None:
    """What *pipe* does in a second, or None where no source says.

    *dtype* is what ``mma`` multiplies and what ``convert`` converts from; the other pipes do not ask.

    Raises:
        UnknownNameError: the machine has no rate for *dtype*, or there is no such pipe.
    """
    match pipe:
        case "mma":
            machine.peak(dtype)
            return _stated(machine, f"peak_{dtype}")
        case "exp":
            return _special(machine, "special_function_throughput")
        case "convert":
            return _special(machine, f"conversion_throughput_{dtype}") if dtype else None
        case "vector":
            return _vector(machine)
        case "shared":
            return _shared(machine)
        case "l2":
            return _stated(machine, "l2_bandwidth") or _stated(machine, "measured_l2_bandwidth")
        case "dram":
            return _stated(machine, "dram_bandwidth")
    raise UnknownNameError(f"there is no pipe {pipe!r}; there are {', '.join(PIPES)}")


def _stated(machine: Machine, name: str) -> Rate | None:
    constant = machine.get(name)
    if constant is None:
        return None
    return Rate(constant.value, constant.unit, f"{name} = {constant.as_printed}", constant.kind)


def _special(machine: Machine, throughput_name: str) -> Rate | None:
    clock = machine.get("special_function_clock") or machine.get("tensor_peak_clock") or machine.get("boost_clock")
    return _of_all_sms(machine, throughput_name, clock, "op/s")


def _shared(machine: Machine) -> Rate | None:
    """Known where it is known how much of a product one instruction makes, and so how often operands are read."""
    if machine.get("mma_rows") is None or machine.get("mma_columns") is None:
        return None
    return _of_all_sms(machine, "smem_bandwidth", machine.get("tensor_peak_clock") or machine.get("boost_clock"), "B/s")


def _of_all_sms(machine: Machine, each_name: str, clock: Constant | None, unit: str) -> Rate | None:
    """Units x throughput x clock; the clock is that of the matrix peaks, so that the two times can be compared."""
    units, each = machine.get("sm_count"), machine.get(each_name)
    if units is None or each is None or clock is None:
        return None
    how = f"{units.as_printed} x {each.as_printed} x {clock.name} {clock.as_printed}"
    return Rate(units.value * each.value * clock.value, unit, how, "derived")


def _vector(machine: Machine) -> Rate | None:
    fp32 = machine.get("peak_fp32")
    # where the file sets the vector rate apart, peak_fp32 belongs to the matrix engines
    if fp32 is None or "peak_fp32_vector" in machine.absent:
        return None
    how = f"peak_fp32 {fp32.as_printed} / {_FLOP_PER_VECTOR_OP}, as a fused multiply-add counts as two FLOP"
    return Rate(fp32.value / _FLOP_PER_VECTOR_OP, "op/s", how, "derived")


def _seconds(amount: sp.Expr | int | None, rate: Rate | None) -> sp.Expr | None:
    if amount is None or rate is None:
        return None
    return amount * sp.Rational(rate.value.denominator, rate.value.numerator)

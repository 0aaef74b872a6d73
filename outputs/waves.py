"""Modelled time of a schedule whose CTAs run in waves: a launch that fills a wave only in part takes as long as a full one.

    time  =  sum over kernels of  (slowest pipe's work / its rate) * ceil(w) / w,     w = CTAs / C

C CTAs run at once and share every rate evenly, so a CTA alone runs at 1/C of the machine. Kernels run one after another.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import sympy as sp

from derive.exact import Number, value
from derive.flops import Pipe, kernel_executed
from derive.residency import kernel_dram
from derive.shared_memory import kernel_shared_traffic
from derive.symbols import C
from derive.traffic import kernel_traffic
from hardware.roofline import PIPES
from outputs.products import flop_by_type, matmul_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from derive.schedule import Kernel
    from hardware.roofline import Pipe as Level
    from outputs.account import Account


class Waves:
    """The closed forms that the modelled time of one account is made of; raises ``UnboundError`` at numbers that lack one."""

    def __init__(self, account: Account) -> None:
        self._rates = {level: account.rate(level) for level in PIPES}
        kernels = account.derivation.schedule.kernels
        self._kernels = [(kernel.ctas, _work(account, kernel)) for kernel in kernels]
        self._products = [matmul_seconds(account, flop_by_type(account, (kernel,))) for kernel in kernels]

    def seconds(self, values: Mapping[str, Number]) -> Number:
        """The modelled time at *values*, exact."""
        times = [
            self._slowest(work, products, values) / efficiency(ctas, values)
            for (ctas, work), products in zip(self._kernels, self._products, strict=True)
        ]
        return sum(times, start=Fraction(0))

    def _slowest(
        self, work: Mapping[Level, sp.Expr], products: sp.Expr | None, values: Mapping[str, Number]
    ) -> Fraction:
        times = [
            Fraction(value(amount, values)) / rate.value
            for level, amount in work.items()
            if (rate := self._rates[level]) is not None
        ]
        return max(times if products is None else (*times, Fraction(value(products, values))))


def efficiency(ctas: sp.Expr, values: Mapping[str, Number]) -> Fraction:
    """The share of the places for CTAs that are taken: w / ceil(w)."""
    waves = Fraction(value(ctas, values)) / value(C, values)
    return waves / ceil(waves)


def _work(account: Account, kernel: Kernel) -> dict[Level, sp.Expr]:
    schedule = account.derivation.schedule
    run = kernel_executed(schedule, kernel)
    shared = kernel_shared_traffic(schedule, kernel)
    return {
        **({} if shared is None else {"shared": shared.total.amount}),
        "exp": run[Pipe.SFU].amount,
        "vector": run[Pipe.VECTOR].amount,
        "convert": account.kernel_converted(kernel),
        "l2": kernel_traffic(schedule, kernel).in_bytes(account.widths).total.amount,
        "dram": kernel_dram(schedule, kernel).in_bytes(account.widths).total.amount,
    }

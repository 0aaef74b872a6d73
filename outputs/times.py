"""The time of a schedule: each pipe and level alone at its peak rate, and the one that binds."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from hardware.roofline import PIPES
from outputs.layout import Section, Table
from outputs.notation import put, text
from outputs.products import matmul_rate
from outputs.quantities import decimal, seconds, significant, size

if TYPE_CHECKING:
    from hardware.roofline import Pipe as Level
    from outputs.explanation import Explanation

PIPE_NAMES: dict[Level, str] = {
    "mma": "matmul",
    "exp": "exp",
    "vector": "vector",
    "convert": "convert",
    "shared": "shared mem",
    "l2": "L2-SM",
    "dram": "DRAM",
}
"""What each is called in a table."""


def roofline(answer: Explanation) -> Section:
    """Seconds of each pipe and level of every schedule, what binds, and where each rate comes from."""
    converts = any(a.converted != 0 for a in answer.accounts)
    staged = any(a.times.get("shared") is not None for a in answer.accounts)
    columns = tuple(p for p in PIPES if (p != "convert" or converts) and (p != "shared" or staged))
    table = Table(("", *(PIPE_NAMES[p] for p in columns), "binds", "at least"))
    notes = []
    for a in answer.accounts:
        known = a.times
        cells = ["?" if (t := known[p]) is None else seconds(t) for p in columns]
        binds = PIPE_NAMES[a.bound] if a.bound else "?"
        table.add(a.name, *cells, binds, "?" if a.seconds is None else seconds(a.seconds))
        if a.intensity == 0:
            notes.append(f"{a.name}: no matrix product, so that its FLOP a byte say nothing; {binds} binds")
        elif a.intensity is not None and a.ridge is not None:
            ratio = Fraction(a.intensity) / a.ridge
            side = (
                f"{significant(ratio)}x past it: compute-bound against HBM"
                if ratio >= 1
                else f"{significant(1 / ratio)}x short of it: bandwidth-bound against HBM"
            )
            notes.append(
                f"{a.name}: {significant(a.intensity)} FLOP/B of HBM, ridge {significant(a.ridge)} FLOP/B; {side}"
            )
    pipes: tuple[Level, ...] = ("mma", "exp", "vector", "convert")
    first = answer.accounts[0]
    for pipe in pipes:
        if pipe == "mma" and (by_type := _by_type(answer)):
            notes += by_type
        elif (rate := first.rate(pipe)) is not None and (pipe != "convert" or converts):
            unit = "FLOP/s" if pipe == "mma" else "op/s"
            notes.append(f"{PIPE_NAMES[pipe]} at {decimal(rate.value, unit)}: {rate.how}")
    notes += _staged(answer)
    if converts:
        notes.append(
            f"products multiply {first.operand}: {first.narrow} operands are converted to it as they are brought in"
        )
        if first.rate("convert") is None and answer.machine is not None:
            notes.append(
                f"{answer.machine.id} states no rate of converting {first.narrow}: its time is unknown and left out"
            )
    return Section("time: each pipe and level alone at its peak; the slowest binds", table, notes)


def _staged(answer: Explanation) -> list[str]:
    """Bytes through shared memory, where the machine says how much of a product one instruction makes; else nothing."""
    rate = answer.accounts[0].rate("shared")
    moved = [(a, a.shared.total.amount) for a in answer.accounts if a.shared is not None]
    if rate is None or not moved:
        return []
    lines = [f"{PIPE_NAMES['shared']} at {decimal(rate.value, rate.unit)}: {rate.how}"]
    for a, amount in moved:
        number = a.number(amount)
        if number:
            lines.append(
                f"{a.name}: {size(number)} cross shared memory, {text(sp.factor_terms(put(amount, answer.shown)))}"
            )
    return lines


def _by_type(answer: Explanation) -> list[str]:
    """Where products multiply several types: FLOP, rate and time of each, which add up; nothing where all are of one."""
    lines = []
    for a in answer.accounts:
        if set(a.matmul_by_type) == {a.operand}:
            continue
        for name, amount in a.matmul_by_type.items():
            flop, rate = a.number(amount), matmul_rate(a, name)
            if flop and rate is not None:
                lines.append(
                    f"{a.name}: {name} products {decimal(flop, 'FLOP')} at {decimal(rate.value, 'FLOP/s')}, {rate.how}:"
                    f" {seconds(Fraction(flop) / rate.value)}"
                )
    if lines:
        lines.append(
            "matmul: products run one after another, each at the rate of its own operands' type, so their times add"
        )
    return lines

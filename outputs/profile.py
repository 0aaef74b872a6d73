"""How to confirm the counts with a profiler's counters."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from outputs.confront.replays import LONG_ENOUGH
from outputs.layout import Section
from outputs.quantities import grouped, seconds, significant, size

if TYPE_CHECKING:
    from outputs.account import Account
    from outputs.explanation import Explanation

_SECTOR = 32
"""Bytes of an L2 sector, the unit of the profiler's counters (NVIDIA Nsight Compute documentation)."""


def profile(answer: Explanation) -> Section | None:
    """What the profiler should show for each schedule; ``None`` without numbers and a machine."""
    lines = [line for a in answer.accounts if a.is_numeric and answer.machine is not None for line in _expected(a)]
    if not lines:
        return None
    fused = answer.fused
    if fused is not None and fused.fits:
        sm, dram = fused.exact(fused.sm.total.amount), fused.exact(fused.dram.total.amount)
        if sm != dram:
            lines.append(
                f"DRAM bytes near {size(dram)} confirm the reuse; near {size(sm)} the grid order defeats the L2"
            )
    lines.append("flush the L2 between runs (ncu does by default); last writes may still sit in the L2 when it counts")
    return Section("confirm with ncu (lts counters include traffic between L2 partitions)", lines)


def _expected(account: Account) -> list[str]:
    read, write = (account.exact(c.amount) for c in (account.dram.read, account.dram.write))
    sectors = Fraction(account.exact(account.sm.read.amount)) / _SECTOR
    lines = [
        f"{account.name}: dram__bytes_read.sum {size(read)}, dram__bytes_write.sum at most {size(write)},"
        f" lts__t_sectors_op_read.sum about {grouped(sectors)},"
        f" lts__t_sector_hit_rate.pct about {significant((account.hit_rate or 0) * 100)}"
    ]
    if account.seconds is not None and account.seconds < LONG_ENOUGH:
        lines.append(
            f"  {account.name} may run under {seconds(LONG_ENOUGH)}: then trust DRAM bytes, not hit rates, whose counters"
            " come from different replays"
        )
    return lines

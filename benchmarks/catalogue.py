"""How long the whole catalogue takes: every schedule that fits every variant derived and counted, in one process."""

from __future__ import annotations

import time
from itertools import product

import numpy as np

from derive.attention import names as variant_names
from derive.attention import variant
from derive.errors import PreconditionError
from derive.flops import executed, flops
from derive.footprint import footprint, memory_peak
from derive.residency import dram
from derive.rewrite import Derivation
from derive.traffic import compulsory, traffic
from rules.derivations import names as schedule_names
from rules.derivations import plan

COUNTS = ("derive", "FLOP", "SM-side", "HBM", "memory")


def timed(found: dict[str, float], name: str, start: float) -> float:
    """Add what has passed since *start* to *name*; the new start."""
    now = time.perf_counter()
    found[name] += now - start
    return now


def counted(made: Derivation, found: dict[str, float]) -> None:
    """Every closed form that an answer prints, its time added to *found* by kind."""
    cut, start = made.schedule, time.perf_counter()
    flops(cut.graph)
    executed(cut)
    start = timed(found, "FLOP", start)
    compulsory(cut.graph)
    traffic(cut)
    start = timed(found, "SM-side", start)
    dram(cut)
    start = timed(found, "HBM", start)
    footprint(cut)
    memory_peak(cut)
    timed(found, "memory", start)


def main() -> None:
    """Print the time of the catalogue by kind, its slowest pairs, and how time grows with the number of Einsums."""
    found, pairs = dict.fromkeys(COUNTS, 0.0), []
    begin = time.perf_counter()
    for name, schedule in product(variant_names(), schedule_names()):
        start = time.perf_counter()
        try:
            made = plan(schedule).derive(variant(name).graph())
        except PreconditionError:
            continue
        timed(found, "derive", start)
        counted(made, found)
        pairs.append((time.perf_counter() - start, len(made.schedule.graph.einsums), name, schedule))
    total = time.perf_counter() - begin
    print(f"{len(pairs)} pairs of {len(variant_names())} variants and {len(schedule_names())} schedules: {total:.2f} s")
    print(", ".join(f"{name} {seconds:.2f} s" for name, seconds in found.items()))
    for seconds, einsums, name, schedule in sorted(pairs, reverse=True)[:5]:
        print(f"  {seconds * 1e3:6.0f} ms  {einsums:3d} Einsums  {name} under {schedule}")
    sizes, times = (np.array([pair[n] for pair in pairs]) for n in (1, 0))
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"time grows as (number of Einsums)^{slope:.2f}, least squares over all pairs")


if __name__ == "__main__":
    main()

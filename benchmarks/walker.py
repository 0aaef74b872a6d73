"""Tiles that the walker visits a second: what bounds the sizes at which closed forms can be checked."""

from __future__ import annotations

import time

from derive.attention import variant
from derive.replay import walk
from rules.derivations import plan

SCHEDULES = ("flash1", "flash2")
LENGTHS = (1024, 4096)
TILE = 16


def main() -> None:
    """Walk multi-head attention at two lengths, full and causal, and print visits a second."""
    print(f"{'schedule':<10}{'mask':<8}{'N':>6}{'visits':>10}{'time':>10}{'visits/s':>12}")
    for name in SCHEDULES:
        for mask in ("full", "causal"):
            schedule = plan(name).derive(variant("mha").graph(mask, given=())).schedule
            for length in LENGTHS:
                values = {"N_q": length, "N_k": length, "d": 64, "B_r": TILE, "B_c": TILE}
                start = time.perf_counter()
                visits = walk(schedule, values).tile_visits
                seconds = time.perf_counter() - start
                print(f"{name:<10}{mask:<8}{length:>6}{visits:>10,}{seconds:>8.3f} s{visits / seconds:>12,.0f}")


if __name__ == "__main__":
    main()

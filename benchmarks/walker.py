"""Tiles that the two walks visit a second: what bounds the sizes at which closed forms can be checked."""

from __future__ import annotations

import time
from collections.abc import Callable

from derive.attention import variant
from derive.replay import Walk, walk
from derive.replay_arrays import Walker
from rules.derivations import plan

SCHEDULES = ("flash1", "flash2")
LENGTHS = (256, 1024, 4096)
TILE = 16


def timed(walked: Callable[[], Walk]) -> tuple[Walk, float]:
    """What a walk counts, and the processor seconds it takes."""
    start = time.process_time()
    found = walked()
    return found, time.process_time() - start


def main() -> None:
    """Walk multi-head attention at three lengths, full and causal, both ways, and print visits a second."""
    print(f"{'schedule':<10}{'mask':<8}{'N':>6}{'visits':>10}{'plain/s':>12}{'arrays/s':>13}{'ratio':>7}")
    for name in SCHEDULES:
        for mask in ("full", "causal"):
            schedule = plan(name).derive(variant("mha").graph(mask, given=())).schedule
            walker = Walker(schedule)
            for length in LENGTHS:
                values = {"N_q": length, "N_k": length, "d": 64, "B_r": TILE, "B_c": TILE}
                plain, slow = timed(lambda values=values, schedule=schedule: walk(schedule, values))
                fast_walk, fast = timed(lambda values=values, walker=walker: walker.walk(values))
                if fast_walk != plain:
                    raise SystemExit(f"the walks differ: {name}, {mask}, N={length}")
                visits = plain.tile_visits
                print(
                    f"{name:<10}{mask:<8}{length:>6}{visits:>10,}{visits / slow:>12,.0f}{visits / fast:>13,.0f}"
                    f"{slow / fast:>7.1f}"
                )


if __name__ == "__main__":
    main()

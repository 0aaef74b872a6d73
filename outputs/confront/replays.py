"""Counters of a short kernel come from different replays and do not belong together.

A profiler replays a kernel until every counter was gathered; below about 20 us the replays differ too much for a share of two
counters, and hit rates came out above 100 % or unrelated to reuse. Source: NVIDIA developer forums,
https://forums.developer.nvidia.com/t/weird-number-for-l2-cache-hitrate/120341/2 and
https://forums.developer.nvidia.com/t/l2-cache-rate-profiled-in-nsight-compute-is-confused/247282 .
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from outputs.quantities import seconds

if TYPE_CHECKING:
    from outputs.confront.readings import Confrontation

LONG_ENOUGH = Fraction(20, 10**6)
"""Seconds from which on counters of different replays agree."""


def mixed_replays(one: Confrontation) -> str:
    """A warning where a kernel is too short; empty where none is, or no time is known.

    Without a measured time the least time of the model stands for it.
    """
    if not set(one.profile.counters) - {"seconds"}:
        return ""
    measured = one.profile.shortest
    expected = one.account.seconds
    time = measured if measured is not None else None if expected is None else Fraction(expected)
    if not time or time >= LONG_ENOUGH:
        return ""
    took = (
        f"a kernel took {seconds(time)}"
        if measured is not None
        else f"no time was measured, and {seconds(time)} may do"
    )
    return (
        f"{took}, below {seconds(LONG_ENOUGH)}: counters of so short a kernel are gathered in different replays;"
        " compare DRAM bytes, not hit rates, and launch a longer one"
    )

"""The last whole number at which something still holds."""

from __future__ import annotations

from collections.abc import Callable


def last_that_holds(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number from *low* on at which *holds* is true, by bisection.

    Args:
        holds: true at *low* and up to some number, false from there on.
        low: a number at which it holds; returned unasked when it holds nowhere above.
        high: a number at which it does not hold.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

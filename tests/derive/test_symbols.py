"""Symbols: the signs they are known by."""

from __future__ import annotations

from derive.symbols import MAY_BE_ZERO, MEANINGS, symbol


def test_a_size_that_may_be_nothing_is_not_said_to_be_positive() -> None:
    """Signs decide extremes: 0 sinks are allowed, 0 keys are not, and nothing is below 0."""
    for name in MEANINGS:
        assert symbol(name).is_nonnegative
        assert bool(symbol(name).is_positive) is (name not in MAY_BE_ZERO)

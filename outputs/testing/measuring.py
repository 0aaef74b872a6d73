"""Calling what a person wants tested: counts as exact numbers, and sizes drawn from a strategy, all of them or the smallest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from inspect import signature
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Any, SupportsFloat

from derive.errors import BadValueError, repeated
from derive.exact import Number

Sizes = Mapping[str, Number]
Measured = Callable[..., SupportsFloat]


def counted(measured: Measured, sizes: Sizes) -> Number:
    """What *measured* counts at *sizes*, exactly.

    Raises:
        BadValueError: it does not take these sizes, or returns no finite number.
    """
    __tracebackhide__ = True
    try:
        signature(measured).bind(**sizes)
    except TypeError:
        takes = ", ".join(signature(measured).parameters) or "nothing"
        raise BadValueError(
            f"what is measured is called with {', '.join(sizes)} and takes {takes}; draw what it takes, or let it take more "
            "with **others"
        ) from None
    except ValueError:  # a builtin that does not say what it takes
        pass
    return exactly(measured(**sizes), sizes)


def exactly(count: object, sizes: Sizes) -> Number:
    """*count* exactly.

    Raises:
        BadValueError: it is no finite number.
    """
    __tracebackhide__ = True
    if isinstance(count, Integral) and not isinstance(count, bool):
        return int(count)
    at = ", ".join(f"{k}={v}" for k, v in sizes.items())
    if isinstance(count, bool) or not isinstance(count, (Real, Decimal)):
        kind = type(count).__name__
        raise BadValueError(f"what was measured at {at} is {repeated(str(count))}, a {kind}, and a count is a number")
    if not isinstance(count, Rational) and not isfinite(count):
        raise BadValueError(f"what was measured at {at} is {count}, and a count is a finite number")
    found = Fraction(count) if isinstance(count, (Rational, Decimal)) else Fraction(float(count))
    return found.numerator if found.denominator == 1 else found


def drawn(over: Any, examples: int, seed: int, look: Callable[[dict[str, Number]], None]) -> None:
    """Call *look* with *examples* sizes from *over*; what it raises goes on to the caller.

    Raises:
        BadValueError: *over* is no strategy, or one of something else than sizes; *examples* is below 1.
    """
    __tracebackhide__ = True
    from hypothesis import given
    from hypothesis import seed as seeded
    from hypothesis.strategies import SearchStrategy

    from outputs.searching import quietly

    if not isinstance(over, SearchStrategy):
        raise BadValueError(
            f"over={repeated(str(over))} is no Hypothesis strategy; write over=shapes('N', 'd') or such"
        )
    if examples < 1:
        raise BadValueError(f"examples={examples}: at least one point is compared")

    @seeded(seed)
    @quietly(examples)
    @given(over)
    def each(sizes: Any) -> None:
        __tracebackhide__ = True
        if not isinstance(sizes, Mapping):
            raise BadValueError(
                f"over= draws {repeated(str(sizes))}, which is no sizes by key; write over=shapes('N', 'd') or such"
            )
        look(dict(sizes))

    each()


class _Found(Exception):  # noqa: N818  (how a search ends, no error of anybody's)
    """Raised inside a search where the two differ, so that Hypothesis shrinks the sizes."""


def smallest(
    over: Any, differs: Callable[[dict[str, Number]], bool], examples: int, seed: int
) -> dict[str, Number] | None:
    """The smallest drawn sizes at which *differs* is true, or was, where it changes; ``None`` where there are none."""
    __tracebackhide__ = True
    from hypothesis.errors import Flaky

    last: dict[str, Number] = {}

    def look(sizes: dict[str, Number]) -> None:
        __tracebackhide__ = True
        nonlocal last
        if differs(sizes):
            last = sizes
            raise _Found

    try:
        drawn(over, examples, seed, look)
    except (_Found, Flaky):
        return last or None
    return None

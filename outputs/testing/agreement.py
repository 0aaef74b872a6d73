"""Something measured against a closed form: on drawn sizes, or row by row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.errors import BadValueError
from derive.exact import Number
from outputs.testing.closed_form import shown
from outputs.testing.disagreement import Agreement, Disagreement, Sizes
from outputs.testing.exponents import exponents
from outputs.testing.measuring import Measured, counted, drawn, exactly, smallest
from outputs.testing.slip import CLOSE
from outputs.testing.slips import diagnoses, pattern
from outputs.testing.table import read_table

if TYPE_CHECKING:
    from outputs.testing.closed_form import ClosedForm

_WITNESSES = 100
"""Points that differ, at most, and as many that agree, at which a slip must predict what was measured."""


@dataclass(frozen=True)
class _Point:
    """One comparison.

    Attributes:
        sizes: by key.
        measured, derived: both counts.
        differs: whether by more than the tolerance.
    """

    sizes: Sizes
    measured: Number
    derived: Number
    differs: bool


def agree(
    measured: Measured, expected: ClosedForm, *, over: Any, tolerance: float = 0, examples: int = 100, seed: int = 0
) -> Agreement:
    """Compare *measured* with *expected* on sizes drawn from *over*; the first difference is shrunk.

    Args:
        measured: called with sizes by key, ``measured(N=.., d=..)``, all of them drawn from *over*; a kernel's byte counter, or
            a simulator.
        expected: what it should give.
        over: a Hypothesis strategy of mappings, such as ``shapes("N", "d", "Br", "Bc")``.
        tolerance: relative difference that passes; 0 asks for equality.
        examples: sizes to try.
        seed: seed of the random sizes.

    Raises:
        Disagreement: with the smallest sizes at which they differ.
        BadValueError: what was measured is no finite number, or does not take these sizes.
    """
    __tracebackhide__ = True
    check_tolerance(tolerance)

    def compared(sizes: Sizes) -> _Point:
        __tracebackhide__ = True
        both = counted(measured, sizes), expected(**sizes)
        return _Point(sizes, *both, not close(*both, tolerance))

    points: list[_Point] = []

    def look(sizes: Sizes) -> None:
        __tracebackhide__ = True
        points.append(compared(sizes))

    drawn(over, examples, seed, look)
    if not any(point.differs for point in points):
        return Agreement(len(points))
    least = smallest(over, lambda sizes: compared(sizes).differs, examples, seed)
    first = min((p for p in points if p.differs), key=_size) if least is None else compared(least)
    found = _disagreement(expected, first, points, tolerance)
    if (again := counted(measured, first.sizes)) != first.measured:
        found.pattern = (
            f"measured again there it is {shown(again)}: it changes from call to call, which tolerance= allows for"
        )
    raise found


def agree_table(
    table: Path | str | Sequence[Sizes],
    expected: ClosedForm,
    *,
    column: str,
    sizes: Sequence[str] | None = None,
    tolerance: float = 0,
) -> Agreement:
    """Compare each row of *table* with *expected*.

    Args:
        table: a CSV file, or rows: sizes by key and one measured column.
        expected: what the column should be.
        column: name of the measured column.
        sizes: names of the columns that are sizes; all others unless given.
        tolerance: relative difference that passes.

    Raises:
        Disagreement: with the smallest row that differs.
        BadValueError: a row without one of the columns, no rows, or a measured column that is the same in all of them.
    """
    __tracebackhide__ = True
    check_tolerance(tolerance)
    points = [
        _Point(at, count, derived, not close(count, derived, tolerance))
        for at, count in rows_of(table, column, sizes)
        for derived in (expected(**at),)
    ]
    if len(points) > 1 and len({p.measured for p in points}) == 1 < len({p.derived for p in points}):
        raise BadValueError(
            f"{column} is {points[0].measured} in all {len(points)} rows, whose sizes differ: nothing was measured; "
            "profile with counters enabled"
        )
    wrong = [point for point in points if point.differs]
    if not wrong:
        return Agreement(len(points))
    raise _disagreement(expected, min(wrong, key=_size), points, tolerance)


def rows_of(
    table: Path | str | Sequence[Sizes], column: str, sizes: Sequence[str] | None
) -> list[tuple[dict[str, Number], Number]]:
    """The sizes of each row, and what was measured.

    Raises:
        BadValueError: a row without one of the columns, or no rows.
    """
    __tracebackhide__ = True
    wanted = None if sizes is None else (*sizes, column)
    rows = read_table(table, wanted) if isinstance(table, (str, Path)) else [dict(row) for row in table]
    needed = wanted if wanted is not None else (column,)
    missing = next((name for row in rows for name in needed if name not in row), None)
    if missing is not None or not rows:
        raise BadValueError(f"the table needs rows, each with the measured column {missing or column}")
    return [
        ({k: v for k, v in row.items() if k != column and (sizes is None or k in sizes)}, exactly(row[column], row))
        for row in rows
    ]


def _disagreement(expected: ClosedForm, first: _Point, points: Sequence[_Point], tolerance: float) -> Disagreement:
    """What is known about *first*, the smallest of those that differ."""
    wrong, right = ([p for p in points if p.differs is differs] for differs in (True, False))
    told = [first, *_some(wrong), *_some(right)]
    witnesses = [(expected.values(p.sizes), p.measured) for p in told]
    grows = exponents([p.sizes for p in points], [p.measured for p in points])
    should = exponents([p.sizes for p in points], [p.derived for p in points])
    return Disagreement(
        str(expected),
        first.sizes,
        first.measured,
        first.derived,
        {key: (grows[key], should[key]) for key in grows if key in should},
        diagnoses(expected, witnesses, max(CLOSE, Fraction(tolerance))),
        len(points),
        len(wrong),
        pattern(expected, witnesses),
        expected.unsaid(first.sizes),
        expected.parts(first.sizes),
    )


def _some(points: Sequence[_Point]) -> Sequence[_Point]:
    """At most ``_WITNESSES`` of *points*, from all over them."""
    return points[:: -(-len(points) // _WITNESSES) or 1]


def _size(point: _Point) -> Number:
    return prod(point.sizes.values())


def check_tolerance(tolerance: float) -> None:
    """Refuse what is no tolerance.

    Raises:
        BadValueError: it is negative, or not finite.
    """
    __tracebackhide__ = True
    if not isfinite(tolerance) or tolerance < 0:
        raise BadValueError(f"tolerance={tolerance}: a relative difference is 0 or more and finite, such as 0.02")


def close(measured: Number, derived: Number, tolerance: float) -> bool:
    """Whether they differ by no more than *tolerance* of what is derived."""
    return abs(Fraction(measured) - Fraction(derived)) <= Fraction(tolerance) * abs(Fraction(derived))

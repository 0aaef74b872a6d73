"""Something measured against a closed form or a law: on drawn sizes, or row by row of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.errors import BadValueError, DeriveError
from derive.exact import Number, value
from outputs.testing.exponents import Exponent, exponents
from outputs.testing.slips import diagnoses
from outputs.testing.table import read_table

if TYPE_CHECKING:
    from derive.laws import Law
    from outputs.testing.closed_form import ClosedForm

Sizes = Mapping[str, Number]
Measured = Callable[..., Number | float]
_WITNESSES = 12
"""Further points at which a slip must predict what was measured."""
_LADDER = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True)
class Agreement:
    """What a comparison looked at.

    Attributes:
        tried: points compared.
        outside: points outside the regime of a law, of which it says nothing.
    """

    tried: int
    outside: int = 0

    @property
    def says(self) -> str:
        """In a sentence; where every point lay outside, that nothing was tested."""
        if self.outside and self.outside == self.tried:
            return f"outside the law's regime at all {self.tried} points: nothing was tested"
        return f"agrees at {self.tried - self.outside} points" + (f", {self.outside} outside" if self.outside else "")


@dataclass
class Disagreement(AssertionError):  # noqa: N818  (what a test finds, and no mistake of its call)
    """The smallest sizes at which measured and derived differ, and what is known about why.

    Attributes:
        what: what was compared.
        sizes: the sizes, by key.
        measured, derived: both counts there.
        powers: powers of each size in what was measured and in what is derived.
        explained: slips whose count is the measured one at every point looked at.
        tried: points compared before.
    """

    what: str
    sizes: Sizes
    measured: Number
    derived: Number
    powers: Mapping[str, tuple[Exponent, Exponent]] = field(default_factory=dict)
    explained: Sequence[str] = ()
    tried: int = 0

    @property
    def lines(self) -> list[str]:
        """The report, line by line."""
        at = ", ".join(f"{key}={size}" for key, size in self.sizes.items())
        found = [f"{self.what}: measured {self.measured}, derived {self.derived} at {at}"]
        if self.derived:
            ratio = Fraction(self.measured) / Fraction(self.derived)
            exact = f" = {ratio}" if ratio.denominator < 10**9 else ""
            found.append(f"measured / derived{exact} = {float(ratio):.6g}; the smallest case found")
        found += [f"grows with {key}^({m}), derived {key}^({d})" for key, (m, d) in self.powers.items()]
        found += [f"diagnosis: {says}" for says in self.explained] or ["diagnosis: no known slip gives these numbers"]
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines)


def agree(
    measured: Measured, expected: ClosedForm, *, over: Any, tolerance: float = 0, examples: int = 100, seed: int = 0
) -> Agreement:
    """Compare *measured* with *expected* on sizes drawn from *over*; the first difference is shrunk.

    Args:
        measured: called with sizes by key, ``measured(N=.., d=..)``; a kernel's byte counter, or a simulator.
        expected: what it should give.
        over: a Hypothesis strategy of mappings, such as ``shapes("N", "d", "Br", "Bc")``.
        tolerance: relative difference that passes; 0 asks for equality.
        examples: sizes to try.
        seed: seed of the random sizes.

    Raises:
        Disagreement: with the smallest sizes at which they differ.
        BadValueError: what was measured is no finite number.
    """
    seen: list[dict[str, Number]] = []

    def differs(sizes: dict[str, Number]) -> bool:
        seen.append(sizes)
        return not _close(_finite(measured(**sizes), sizes), expected(**sizes), tolerance)

    smallest = _search(over, differs, examples, seed)
    if smallest is None:
        return Agreement(len(seen))
    witnesses = [smallest, *seen[:_WITNESSES]]
    points = [(expected.values(s), _finite(measured(**s), s)) for s in witnesses]
    powers = _powers(lambda **s: _finite(measured(**s), s), expected, smallest)
    raise Disagreement(
        str(expected), smallest, points[0][1], expected(**smallest), powers, diagnoses(expected, points), len(seen)
    )


def agree_table(
    table: Path | str | Sequence[Sizes], expected: ClosedForm, *, column: str, tolerance: float = 0
) -> Agreement:
    """Compare each row of *table* with *expected*.

    Args:
        table: a CSV file, or rows: sizes by key and one measured column.
        expected: what the column should be.
        column: name of the measured column; all others are sizes.
        tolerance: relative difference that passes.

    Raises:
        Disagreement: with the smallest row that differs.
        BadValueError: a row without the column, or no rows.
    """
    rows = read_table(table) if isinstance(table, (str, Path)) else [dict(row) for row in table]
    if not rows or any(column not in row for row in rows):
        raise BadValueError(f"the table needs rows, each with the measured column {column}")
    sizes = [{k: v for k, v in row.items() if k != column} for row in rows]
    counts = [_finite(row[column], row) for row in rows]
    derived = [expected(**s) for s in sizes]
    wrong = [n for n in range(len(rows)) if not _close(counts[n], derived[n], tolerance)]
    if not wrong:
        return Agreement(len(rows))
    first = min(wrong, key=lambda n: prod(sizes[n].values()))
    grows, should = exponents(sizes, counts), exponents(sizes, derived)
    points = [(expected.values(sizes[n]), counts[n]) for n in range(len(rows))]
    powers = {key: (grows[key], should[key]) for key in grows if key in should}
    raise Disagreement(
        str(expected), sizes[first], counts[first], derived[first], powers, diagnoses(expected, points), len(rows)
    )


def obey(
    measured: Measured, law: Law, *, over: Any, by: int = 2, tolerance: float = 0, examples: int = 100, seed: int = 0
) -> Agreement:
    """Test whether scaling the law's symbol *by* multiplies what is measured as the law says, inside its regime.

    Args:
        measured: called with sizes by symbol name, N for both lengths.
        law: an exact law with a known factor.
        over: a Hypothesis strategy of mappings by symbol name.
        by: what the symbol is scaled by.
        tolerance: relative difference of the factor that passes.
        examples: sizes to try.
        seed: seed of the random sizes.

    Returns:
        How many points were compared, and how many lay outside the regime: of those the law says nothing.

    Raises:
        Disagreement: the factor differs; ``measured`` and ``derived`` of the error are the two factors.
        BadValueError: a law without a factor, such as a class.
    """
    factor = law.factor(by)
    if factor is None:
        raise BadValueError(f"this law of {law.symbol} leaves the factor open; test a proved one, or the closed form")
    name = law.symbol.name
    outside = tried = 0

    def factors(sizes: Sizes) -> tuple[Number, Number] | None:
        scaled = {**sizes, name: sizes[name] * by}
        if law.regime.broken(sizes) is not None or law.regime.broken(scaled) is not None:
            return None
        before, after = (_finite(measured(**s), s) for s in (sizes, scaled))
        return (Fraction(after) / Fraction(before) if before else Fraction(0)), value(factor, sizes)

    def differs(sizes: dict[str, Number]) -> bool:
        nonlocal outside, tried
        tried += 1
        both = factors(sizes)
        outside += both is None
        return both is not None and not _close(both[0], both[1], tolerance)

    smallest = _search(over, differs, examples, seed)
    if smallest is None:
        return Agreement(tried, outside)
    found = factors(smallest)
    assert found is not None
    raise Disagreement(f"factor as {name} is multiplied by {by}", smallest, found[0], found[1], tried=tried)


class _Found(Exception):  # noqa: N818  (how a search ends, no error of anybody's)
    """Raised inside a search where the two differ, so that Hypothesis shrinks the sizes."""


def _search(
    over: Any, differs: Callable[[dict[str, Number]], bool], examples: int, seed: int
) -> dict[str, Number] | None:
    """The smallest drawn sizes at which *differs* is true."""
    from hypothesis import given
    from hypothesis import seed as seeded

    from outputs.searching import quietly

    last: dict[str, Number] = {}

    @seeded(seed)
    @quietly(examples)
    @given(over)
    def search(sizes: dict[str, Number]) -> None:
        nonlocal last
        if differs(sizes):
            last = sizes
            raise _Found

    try:
        search()
    except _Found:
        return last
    return None


def _powers(
    measured: Measured, expected: ClosedForm, sizes: Mapping[str, Number]
) -> dict[str, tuple[Exponent, Exponent]]:
    """Powers of each size near *sizes*, others fixed; one that cannot be varied is left out."""
    found = {}
    for key in sizes:
        ladder = [{**sizes, key: sizes[key] * step} for step in _LADDER if sizes[key]]
        try:
            counts = [measured(**s) for s in ladder], [expected(**s) for s in ladder]
        except (DeriveError, ValueError, ArithmeticError):
            continue
        grows, should = (exponents(ladder, c) for c in counts)  # type: ignore[arg-type]
        if key in grows and key in should:
            found[key] = (grows[key], should[key])
    return found


def _close(measured: Number, derived: Number, tolerance: float) -> bool:
    return abs(Fraction(measured) - Fraction(derived)) <= Fraction(tolerance) * abs(Fraction(derived))


def _finite(count: Number | float, sizes: Sizes) -> Number:
    """*count* exactly."""
    if isinstance(count, float) and not isfinite(count):
        at = ", ".join(f"{k}={v}" for k, v in sizes.items())
        raise BadValueError(f"what was measured at {at} is {count}, and a count is a finite number")
    found = Fraction(count)
    return found.numerator if found.denominator == 1 else found

"""Something measured against a scaling law, inside its regime: on drawn sizes, or on pairs of rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import log, prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from derive.errors import BadValueError
from derive.exact import Number, value
from derive.symbols import MEANINGS, N, N_k, N_q, symbol
from outputs.testing.agreement import check_tolerance, close, rows_of
from outputs.testing.disagreement import Agreement, Disagreement, Sizes
from outputs.testing.exponents import TWO_SIGMA, Exponent
from outputs.testing.measuring import Measured, counted, drawn, smallest
from rules.derivations import plan

if TYPE_CHECKING:
    import sympy as sp

    from derive.laws import Law
    from outputs.testing.closed_form import ClosedForm

_NAMES = {meaning.key: name for name, meaning in MEANINGS.items() if meaning.key}
Factors = tuple[Number, Number]
"""What scaling multiplied the count by, and what the law says."""


class NothingTested(UserWarning):
    """Every point lay outside the regime of the law: the test passes, and has tested nothing."""


def law_of(form: ClosedForm, key: str, *beside: str) -> Law:
    """How *form* grows with the size *key*, such as ``Br``; N is both lengths.

    Args:
        form: a closed form.
        key: what is scaled.
        beside: keys of sizes that stay as they are beside it, where their usual value would go with it: ``hk`` beside ``h``.

    Raises:
        BadValueError: *key* is no size of it, or no one law of it is proved.
    """
    from derive.laws import Roles, proved

    alike = {N_q: N, N_k: N} if key == "N" else {}
    kept = {symbol(_NAMES[name]) for name in (key, *beside) if name in _NAMES}
    fixed = {symbol(name): value for name, value in {**form.request.widths, **form.request.numbers}.items()}
    amount = form.request.stated(form.amount, kept)
    amount = amount.xreplace({s: v for s, v in fixed.items() if s not in kept}).xreplace(alike)
    of = N if key == "N" else symbol(_NAMES[key]) if key in _NAMES else None
    if of is None or of not in amount.free_symbols:
        known = ", ".join(sorted(MEANINGS[s.name].key if s.name in MEANINGS else s.name for s in amount.free_symbols))
        raise BadValueError(f"{form} does not depend on {key}; it depends on {known}")
    divides = (*form.request.variant.divides, *plan(form.schedule).divides)
    roles = Roles.of(
        form.account.derivation.schedule, alike, [pair for pair in divides if set(pair) <= amount.free_symbols]
    )
    law = proved(amount, of, roles)
    if law is None:
        raise BadValueError(
            f"no one law of {form} in {key} is proved for all sizes; `derive laws` lists those of its cases, or use agree"
        )
    return law


def obey(
    measured: Measured, law: Law, *, over: Any, by: int = 2, tolerance: float = 0, examples: int = 100, seed: int = 0
) -> Agreement:
    """Test whether scaling the law's symbol *by* multiplies what is measured as the law says, inside its regime.

    Args:
        measured: called with sizes by key, as *over* draws them.
        law: an exact law with a known factor, such as ``law_of(form, "Br")``.
        over: a Hypothesis strategy of mappings by key (``Br``) or by symbol name (``B_r``); N is both lengths.
        by: what the symbol is scaled by.
        tolerance: relative difference of the factor that passes.
        examples: sizes to try.
        seed: seed of the random sizes.

    Returns:
        How many points were compared, and how many lay outside the regime: of those the law says nothing. Where all did, a
        warning ``NothingTested`` says so.

    Raises:
        Disagreement: the factor differs; ``measured`` and ``derived`` of the error are the two factors.
        BadValueError: a law without a factor, such as a class; *over* draws no value for the law's symbol.
    """
    __tracebackhide__ = True
    check_tolerance(tolerance)
    _factor(law, by)

    def factors(sizes: Sizes) -> Factors | None:
        __tracebackhide__ = True
        scaled = _scaled(law, sizes, by)
        if _outside(law, sizes) or _outside(law, scaled):
            return None
        return _quotient(counted(measured, sizes), counted(measured, scaled)), _expected(law, sizes, by)

    found: list[tuple[Factors, int]] = []
    wrong: list[Sizes] = []
    tried = 0

    def look(sizes: Sizes) -> None:
        __tracebackhide__ = True
        nonlocal tried
        tried += 1
        if (both := factors(sizes)) is not None:
            found.append((both, by))
            wrong.extend([] if close(*both, tolerance) else [sizes])

    drawn(over, examples, seed, look)
    if not wrong:
        return _passed(law, tried, tried - len(found))
    least = smallest(
        over, lambda sizes: (both := factors(sizes)) is not None and not close(*both, tolerance), examples, seed
    )
    at = least if least is not None else min(wrong, key=lambda sizes: prod(sizes.values()))
    both = factors(at)
    assert both is not None  # inside the regime, as it was before
    raise _broken(law, at, both, by, found, tolerance)


def obey_table(
    table: Path | str | Sequence[Sizes],
    law: Law,
    *,
    column: str,
    sizes: Sequence[str] | None = None,
    tolerance: float = 0,
) -> Agreement:
    """Test every two rows of *table* that differ in the law's symbol alone, by a whole factor.

    Args:
        table: a CSV file, or rows: sizes by key and one measured column.
        law: an exact law with a known factor, such as ``law_of(form, "Br")``.
        column: name of the measured column.
        sizes: names of the columns that are sizes; all others unless given.
        tolerance: relative difference of the factor that passes.

    Raises:
        Disagreement: with the smaller of the two rows.
        BadValueError: no two such rows, or what ``agree_table`` refuses.
    """
    __tracebackhide__ = True
    check_tolerance(tolerance)
    pairs = list(_pairs(law, rows_of(table, column, sizes)))
    if not pairs:
        raise BadValueError(
            f"no two rows of the table differ in {law.symbol} alone, by a whole factor; measure at {law.symbol} and twice that"
        )
    inside = [
        (at, by, low, high)
        for at, by, low, high in pairs
        if not _outside(law, at) and not _outside(law, _scaled(law, at, by))
    ]
    found = [((_quotient(low, high), _expected(law, at, by)), by) for at, by, low, high in inside]
    wrong = [n for n, (both, _) in enumerate(found) if not close(*both, tolerance)]
    if not wrong:
        return _passed(law, len(pairs), len(pairs) - len(inside))
    first = min(wrong, key=lambda n: prod(inside[n][0].values()))
    raise _broken(law, inside[first][0], found[first][0], found[first][1], found, tolerance)


def _pairs(law: Law, rows: Sequence[tuple[Sizes, Number]]) -> Iterator[tuple[Sizes, int, Number, Number]]:
    """Sizes of the smaller row, the factor to the larger, and both counts."""
    key = _key(law, rows[0][0])
    alike: dict[tuple[tuple[str, Number], ...], list[tuple[Sizes, Number]]] = {}
    for at, count in rows:
        alike.setdefault(tuple(sorted((k, v) for k, v in at.items() if k != key)), []).append((at, count))
    for group in alike.values():
        for at, low in group:
            for larger, high in group:
                by = Fraction(larger[key]) / Fraction(at[key]) if at[key] else Fraction(0)
                if by.denominator == 1 and by > 1:
                    yield at, int(by), low, high


def _key(law: Law, sizes: Sizes) -> str:
    """The key under which *sizes* have the law's symbol."""
    name = law.symbol.name
    found = next((key for key in sizes if name in (key, _NAMES.get(key))), None)
    if found is None:
        raise BadValueError(f"the law is of {name}, and the sizes are {', '.join(sizes)}; draw {name} too")
    return found


def _scaled(law: Law, sizes: Sizes, by: int) -> dict[str, Number]:
    key = _key(law, sizes)
    return {**sizes, key: sizes[key] * by}


def _values(sizes: Sizes) -> dict[str, Number]:
    """By symbol name; N is both lengths."""
    both = {"N_q": sizes["N"], "N_k": sizes["N"]} if "N" in sizes else {}
    return {**both, **{_NAMES.get(key, key): size for key, size in sizes.items()}}


def _outside(law: Law, sizes: Sizes) -> bool:
    return law.regime.broken(_values(sizes)) is not None


@lru_cache(maxsize=64)
def _factor(law: Law, by: int) -> sp.Expr:
    factor = law.factor(by)
    if factor is None:
        raise BadValueError(f"this law of {law.symbol} leaves the factor open; test a proved one, or the closed form")
    return factor


def _expected(law: Law, sizes: Sizes, by: int) -> Number:
    return value(_factor(law, by), _values(sizes))


def _quotient(before: Number, after: Number) -> Number:
    return Fraction(after) / Fraction(before) if before else Fraction(0)


def _passed(law: Law, tried: int, outside: int) -> Agreement:
    found = Agreement(tried, outside)
    if outside == tried:
        warn(f"the law of {law.symbol}: {found.says}", NothingTested, stacklevel=3)
    return found


def _broken(
    law: Law, at: Sizes, both: Factors, by: int, found: Sequence[tuple[Factors, int]], tolerance: float
) -> Disagreement:
    powers = tuple(_power([(b[n], scale) for b, scale in found]) for n in (0, 1))
    return Disagreement(
        f"factor as {law.symbol.name} is multiplied by {by}",
        at,
        *both,
        {_key(law, at): powers} if None not in powers else {},  # type: ignore[dict-item]
        explained=None,
        tried=len(found),
        wrong=sum(not close(*b, tolerance) for b, _ in found),
    )


def _power(factors: Sequence[tuple[Number, int]]) -> Exponent | None:
    """The mean power that *factors* speak of, with two standard errors; ``None`` where a count was not positive."""
    if any(factor <= 0 for factor, _ in factors):
        return None
    slopes = [log(factor) / log(by) for factor, by in factors]
    mean = sum(slopes) / len(slopes)
    spread = sqrt(sum((s - mean) ** 2 for s in slopes) / max(1, len(slopes) - 1) / len(slopes))
    return Exponent(mean, TWO_SIGMA * spread)

"""Counts that are no sum of powers of a symbol, as text and as JSON: each with numbers at which anyone can see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from derive.substitution import free
from outputs.layout import Section, Table
from outputs.notation import text
from outputs.regimes import Marks, number, regime_in_words
from outputs.spelling import in_reading_order

if TYPE_CHECKING:
    from derive.laws import Open
    from outputs.laws import Growths


def section(found: Growths) -> list[Section]:
    """A row a count and symbol without a law; those that were not looked at in one row for each reason."""
    table, marks = Table(("count", "in", "jumps", "with", "where")), Marks()
    reasons: dict[tuple[str, str], int] = {}
    for one in found.findings:
        if one.against is not None and one.against.points:
            where = marks.of(one.against.regime).strip()
            table.add(one.count.name, text(one.symbol), _values(one.against), _others(one.against), where)
        elif one.against is not None:
            reason = text(one.symbol), one.against.why
            reasons[reason] = reasons.get(reason, 0) + 1
    notes = [*marks.notes, *(f"{symbol}: {n} not looked at, {why}" for (symbol, why), n in reasons.items())]
    if table.rows:
        notes.append("these lie on no sum of powers -1 to 2, in the narrowest regime that was looked at")
        return [Section(f"{found.account.name}: undecided", table, notes)]
    return [Section(f"{found.account.name}: undecided", notes)] if notes else []


def as_json(count: str, against: Open) -> dict[str, Any]:
    """The same of one count, all numbers as text."""
    said = [_values(against), _others(against), regime_in_words(against.regime)] if against.points else [against.why]
    return {
        "count": count,
        "symbol": against.symbol.name,
        "why": "; ".join(filter(None, said)),
        "points": [{name: str(n) for name, n in p.items()} for p in against.points],
        "values": [str(v) for v in against.values],
    }


def _values(against: Open) -> str:
    """``560, 1,360, 1,680, 1,920 at W = 4, 8, 12, 16``."""
    places = ", ".join(number(p[against.symbol.name]) for p in against.points)
    return f"{', '.join(map(number, against.values))} at {text(against.symbol)} = {places}"


def _others(against: Open) -> str:
    """What all other symbols of the count are."""
    first = against.points[0]
    still = [
        s for s in free(against.amount) - {against.symbol} if all(p[s.name] == first[s.name] for p in against.points)
    ]
    return ", ".join(f"{text(s)} = {number(first[s.name])}" for s in in_reading_order(still))

"""Numbers as tools write them: with a decimal point or a comma, as the system's language has it; digits in groups or not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from derive.errors import BadValueError, repeated
from derive.exact import Number

_LONGEST = 60
"""Characters of a cell that may be a number."""
_SPACES = "\u0020\u00a0\u202f'\u2019"
"""What stands between groups of three digits where neither a comma nor a point does: French spaces, a Swiss apostrophe."""
_SPACED = re.compile(rf"[+-]?\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?:[.,]\d+)?", re.ASCII)
_END = r"(?:[eE][+-]?\d{1,2})?"
_POINT = re.compile(rf"[+-]?(\d+(?:,\d{{3}})+|\d+)?(\.\d*)?{_END}", re.ASCII)
_COMMA = re.compile(rf"[+-]?(\d+(?:\.\d{{3}})+|\d+)?(,\d*)?{_END}", re.ASCII)
_TELLING = "|".join(
    (
        r"[+-]?\d+(?:{g}\d{{3}})*{m}(?:\d{{1,2}}|\d{{4,}})",
        r"[+-]?\d{{1,3}}(?:{g}\d{{3}})+{m}\d*",
        r"[+-]?0?{m}\d*",
        r"[+-]?\d{{1,3}}(?:{g}\d{{3}}){{2,}}",
    )
)
"""Numbers that tell {m} from {g} as the decimal mark: three digits behind one of them are a fraction or thousands, and tell
nothing, unless a zero is all that stands before."""
_TELLS = {m: re.compile(_TELLING.format(m=re.escape(m), g=re.escape(g)), re.ASCII) for m, g in ((",", "."), (".", ","))}


def decimal_mark(cells: Iterable[str], where: str) -> str:
    """What stands before the fractions in *cells*, a point or a comma; a point where no cell tells.

    Raises:
        BadValueError: some cells are written with the one and some with the other.
    """
    found: dict[str, str] = {}
    for cell in cells:
        if not ("." in cell or "," in cell):
            continue
        for mark, tells in _TELLS.items():
            if mark not in found and len(cell) <= _LONGEST and tells.fullmatch(_joined(cell)):
                found[mark] = cell.strip()
    if len(found) > 1:
        raise BadValueError(
            f"{where} has {repeated(found['.'])} and {repeated(found[','])}: is a comma the decimal sign or between thousands? "
            "Export it in one language (LC_ALL=C)"
        )
    return next(iter(found), ".")


def number(text: str, where: str, mark: str = ".") -> Number:
    """The number that *text* writes, exactly, thousands separated or not.

    Args:
        text: a cell.
        where: its place, for the message.
        mark: what stands before a fraction.

    Raises:
        BadValueError: it is none, or not finite.
    """
    stripped = text.strip()
    if len(stripped) <= _LONGEST and stripped.isascii() and stripped.isdigit():
        return int(stripped)
    if stripped.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise BadValueError(
            f"{where} is {repeated(stripped)}: a measurement is a finite number; measure that row again, or leave it out"
        )
    plain = _joined(stripped) if len(stripped) <= _LONGEST else ""
    matched = (_POINT if mark == "." else _COMMA).fullmatch(plain)
    if matched is None or not (matched[1] or (matched[2] or "")[1:]):
        raise BadValueError(
            f"{where} is {repeated(stripped)}, no number; write digits, such as 8388608, 8,388,608 or 8.4e6"
        )
    between = "," if mark == "." else "."
    found = Fraction(plain.replace(between, "").replace(",", "."))
    return found.numerator if found.denominator == 1 else found


def _joined(text: str) -> str:
    """*text* without spaces or apostrophes between groups of three digits."""
    stripped = text.strip()
    return re.sub(f"[{_SPACES}]", "", stripped) if _SPACED.fullmatch(stripped) else stripped

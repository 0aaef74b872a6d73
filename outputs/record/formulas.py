"""Formulas of a record: text in house notation that reads back to the same expression, step functions beside it as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from derive.errors import BadValueError, DeriveError, one_line, repeated
from derive.steps import Steps, steps
from derive.symbols import COPY, MEANINGS, ROW, N, dummy, symbol
from outputs.notation import text
from outputs.reader import read

_NAMES: Mapping[str, sp.Symbol] = {
    **{name: symbol(name) for name in MEANINGS},
    **{s.name: s for s in (N, ROW, COPY)},
}
_STEPS = "steps_{}"
_MOST_STEPS = 4096


@lru_cache(maxsize=1024)
def _split(formula: sp.Basic) -> tuple[str, tuple[Steps, ...]]:
    """The text of *formula* with a name for each of its step functions, and these."""
    found = tuple(sorted(formula.atoms(Steps), key=str))
    named = {part: dummy(_STEPS.format(n)) for n, part in enumerate(found)}
    return text(formula.xreplace(named)), found


def written(formula: sp.Basic) -> Any:
    """*formula* for JSON: text, or an object with its text and the step functions that the text names.

    Raises:
        BadValueError: its text does not read back to it, so a record would hold another formula.
    """
    words, found = _split(formula)
    parts = [{"at": text(f.args[0]), "starts": [s for s, _ in f.runs], "values": [v for _, v in f.runs]} for f in found]
    record = {"formula": words, "steps": parts} if parts else words
    if reread(record, "formula") != formula:
        raise BadValueError(f"the formula {words} does not read back to the same expression, so it cannot be recorded")
    return record


def reread(record: Any, where: str) -> sp.Expr:
    """The formula that *record* holds; *where* says in an error which one.

    Raises:
        BadValueError: it is none, or beyond a bound of ``outputs.reader``.
    """
    if isinstance(record, str):
        return _read(record, {}, where)
    if not isinstance(record, dict) or set(record) != {"formula", "steps"} or not isinstance(record["steps"], list):
        raise BadValueError(f"{where} is no formula: write text such as 'N_q/B_r'")
    parts = {_STEPS.format(n): _steps(part, f"{where}.steps[{n}]") for n, part in enumerate(record["steps"])}
    read_back = _read(record["formula"], {name: dummy(name) for name in parts}, where)
    return read_back.xreplace({dummy(name): part for name, part in parts.items()})


def _read(words: Any, more: Mapping[str, sp.Symbol], where: str) -> sp.Expr:
    if not isinstance(words, str):
        raise BadValueError(f"{where} is no formula: write text such as 'N_q/B_r'")
    try:
        found = _cached(words) if not more else read(words, {**_NAMES, **more})
    except DeriveError as error:
        raise BadValueError(f"{where}: {one_line(str(error))}") from None
    if not isinstance(found, sp.Expr):
        raise BadValueError(f"{where}: {repeated(words)} is a condition, and a number belongs there")
    return found


@lru_cache(maxsize=1024)
def _cached(words: str) -> sp.Expr:
    return read(words, _NAMES)


def _steps(part: Any, where: str) -> sp.Expr:
    """A step function from its runs."""
    if not isinstance(part, dict) or set(part) != {"at", "starts", "values"}:
        raise BadValueError(f"{where} is no step function: it has at, starts and values")
    runs = part["starts"], part["values"]
    whole = all(isinstance(r, list) and all(type(n) is int and n >= 0 for n in r) for r in runs)
    if (
        not whole
        or not 0 < len(runs[0]) == len(runs[1]) <= _MOST_STEPS
        or sorted(set(runs[0])) != runs[0]
        or runs[0][0]
    ):
        raise BadValueError(f"{where}: starts rise from 0 and each has a whole value, at most {_MOST_STEPS} of them")
    return steps(_read(part["at"], {}, where), *runs)

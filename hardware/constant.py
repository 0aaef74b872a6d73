"""One number of a machine with everything needed to believe it, and the refusals that keep it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from derive.errors import MachineDataError, repeated
from hardware.units import RANGES, UNITS, base_units, printed_units

KINDS = ("datasheet peak", "device reading", "architectural", "derived", "measured", "paper", "from memory")
"""Where a number comes from, so that a reader knows how far to trust it."""

_MOST_DIGITS = 40
_FIELDS = frozenset({"value", "unit", "sparsity", "kind", "source", "date", "note", "readings"})
_ABSENT_FIELDS = frozenset({"absent", "reason", "source", "date", "readings"})
_READING_FIELDS = frozenset({"value", "unit", "text", "sparsity", "source", "note"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What another source says of the same constant.

    Attributes:
        text: as that source prints it, e.g. ``3.4 TB/s``.
        source: where it was read.
        value: in base units; None where only words were printed.
        unit: base unit; empty where only words were printed.
        sparsity: ``sparse`` for a rate that counts skipped zeros as work done, else empty.
        note: why it differs, where known.
    """

    text: str
    source: str
    value: Fraction | None = None
    unit: str = ""
    sparsity: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """One number of a machine.

    Attributes:
        name: e.g. ``dram_bandwidth``.
        value: exact, in base units (B, B/s, FLOP/s, op/s, Hz, count ...).
        unit: the base unit.
        as_printed: as the file has it, e.g. ``3.35 TB/s``.
        kind: one of ``KINDS``.
        source: where it was read.
        date: when it was read.
        note: what a reader must know, often empty.
        readings: the sources that disagree.
        sparsity: ``dense`` for a peak, empty for anything else.
    """

    name: str
    value: Fraction
    unit: str
    as_printed: str
    kind: str
    source: str
    date: date
    note: str = ""
    readings: tuple[Reading, ...] = ()
    sparsity: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """A constant that the machine does not have, or that nobody was found to state; never zero.

    Attributes:
        name: e.g. ``peak_fp8``.
        reason: e.g. ``not supported``.
        source: where that was read; empty where nothing was found.
        date: when it was looked for.
        readings: sources that state a value all the same.
    """

    name: str
    reason: str
    source: str
    date: date
    readings: tuple[Reading, ...] = ()


def constant(name: str, table: Mapping[str, Any], where: str) -> Constant | Absent:
    """The constant of one table of a machine file.

    Args:
        name: the table's name.
        table: its fields, fractions read as ``Decimal`` so that no digit is lost.
        where: the file, for messages.

    Raises:
        MachineDataError: a field is missing, unknown or makes no sense.
    """
    place = f"{where}: [{repeated(name)}]"
    if "absent" in table:
        return _absent(name, table, place)
    _only(table, _FIELDS, place)
    if "value" not in table:
        raise MachineDataError(f"{place} has no value: give one, or state absent = true with its reason")
    unit = _unit(table, base_units(name), place)
    kind = _text(table, "kind", place, f"one of {', '.join(KINDS)}")
    if kind not in KINDS:
        raise MachineDataError(f"{place} has the unknown kind {_seen(kind)}: use one of {', '.join(KINDS)}")
    worth, base = UNITS[unit]
    return Constant(
        name=name,
        value=_in_range(_number(table["value"], place) * worth, base, f"{table['value']} {unit}", place),
        unit=base,
        as_printed=f"{table['value']} {unit}",
        kind=kind,
        source=_text(table, "source", place, "the document and place it was read in"),
        date=_date(table, place),
        note=_note(table, place),
        readings=_readings(table, place),
        sparsity=_sparsity(name, table, place),
    )


def _absent(name: str, table: Mapping[str, Any], place: str) -> Absent:
    _only(table, _ABSENT_FIELDS, place)
    if table["absent"] is not True:
        raise MachineDataError(f"{place} says absent = {_seen(table['absent'])}: write absent = true, or give a value")
    reason = _text(table, "reason", place, 'why there is no value, e.g. reason = "not supported"')
    source = _text(table, "source", place, "it in words, or leave it out") if "source" in table else ""
    return Absent(name, reason, source, _date(table, place), _readings(table, place))


def _only(table: Mapping[str, Any], fields: frozenset[str], place: str) -> None:
    if unknown := sorted(set(table) - fields):
        raise MachineDataError(f"{place} has the unknown field {_seen(unknown[0])}: use {', '.join(sorted(fields))}")


def _seen(value: object) -> str:
    """A *value* of a file as a message repeats it."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 100:
        return "a number of many digits"
    return repeated(repr(value) if isinstance(value, str) else str(value))


def _text(table: Mapping[str, Any], field: str, place: str, right: str) -> str:
    text = table.get(field)
    if not isinstance(text, str) or not text.strip():
        raise MachineDataError(f"{place} has no {field}: state {right}")
    return text


def _note(table: Mapping[str, Any], place: str) -> str:
    return _text(table, "note", place, "it in words, or leave it out") if "note" in table else ""


def _unit(table: Mapping[str, Any], bases: frozenset[str], place: str) -> str:
    right = f"one of {', '.join(printed_units(bases))}"
    unit = _text(table, "unit", place, right)
    if unit not in UNITS:
        raise MachineDataError(f"{place} has the unknown unit {_seen(unit)}: use {right}")
    if UNITS[unit][1] not in bases:
        raise MachineDataError(f"{place} is given in {unit}, which does not measure it: use {right}")
    return unit


def _number(value: object, place: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise MachineDataError(f"{place} has the value {_seen(value)}, not a number: write it bare, e.g. value = 3.35")
    if isinstance(value, Decimal) and not value.is_finite():
        raise MachineDataError(f"{place} has the value {value}: write a finite number, or absent = true and its reason")
    if _digits(value) > _MOST_DIGITS:
        raise MachineDataError(f"{place} has a value of more than {_MOST_DIGITS} digits, beyond any machine; check it")
    return Fraction(value)


def _digits(value: int | Decimal) -> int:
    """About how many digits *value* has written out: a small number is told from 1e999999999 without making it."""
    if isinstance(value, int):
        return value.bit_length() * 3 // 10
    return max(len(value.as_tuple().digits), abs(value.adjusted()) if value else 0)


def _in_range(value: Fraction, base: str, printed: str, place: str) -> Fraction:
    if value <= 0:
        raise MachineDataError(f"{place} is {printed}: a constant is positive; what is missing is absent = true")
    low, high = RANGES[base]
    if not low <= value <= high:
        bounds = f"{float(low):g} and {float(high):g} {base}"
        raise MachineDataError(f"{place} is {printed}, beyond any machine: expected between {bounds}; check the unit")
    return value


def _date(table: Mapping[str, Any], place: str) -> date:
    # datetime is a date too, and a time of day is never meant here
    if type(table.get("date")) is not date:
        raise MachineDataError(f"{place} has no date: state the day it was read, e.g. date = 2026-11-28")
    day: date = table["date"]
    return day


def _sparsity(name: str, table: Mapping[str, Any], place: str) -> str:
    sparsity: str = table.get("sparsity", "")
    if not name.startswith("peak_"):
        if sparsity:
            raise MachineDataError(f"{place} has a sparsity: only a peak_* has one; remove it")
        return ""
    if not sparsity:
        raise MachineDataError(f'{place} does not say dense or sparse: state sparsity = "dense" once that is known')
    if sparsity != "dense":
        raise MachineDataError(
            f"{place} is {_seen(sparsity)}: the main value is the dense peak (often half the printed one); "
            f"move this number to readings"
        )
    return sparsity


def _readings(table: Mapping[str, Any], place: str) -> tuple[Reading, ...]:
    readings = table.get("readings", [])
    if not isinstance(readings, list) or not all(isinstance(reading, dict) for reading in readings):
        raise MachineDataError(f"{place} has readings that are not a list of tables: write readings = [{{ ... }}]")
    return tuple(_reading(reading, f"{place} reading {i}") for i, reading in enumerate(readings, 1))


def _reading(table: Mapping[str, Any], place: str) -> Reading:
    _only(table, _READING_FIELDS, place)
    source = _text(table, "source", place, "the document it was read in")
    sparsity, note = table.get("sparsity", ""), _note(table, place)
    if sparsity not in ("", "sparse", "dense"):
        raise MachineDataError(f"{place} has the sparsity {_seen(sparsity)}: use sparse or dense")
    if "value" not in table:
        text = _text(table, "text", place, "a value with its unit, or a text")
        return Reading(text, source, sparsity=sparsity, note=note)
    unit = _unit(table, frozenset(RANGES), place)
    worth, base = UNITS[unit]
    printed = f"{table['value']} {unit}"
    return Reading(printed, source, _number(table["value"], place) * worth, base, sparsity, note)

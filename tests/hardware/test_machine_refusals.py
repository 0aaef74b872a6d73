"""Each way a machine file can be wrong, refused with its place, what is missing and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from derive.errors import MachineDataError
from hardware.machine import Machine, load_file

HEAD = 'id = "toy"\nname = "Toy"\nvendor = "Nobody"\n'
GOOD = {
    "value": "3.35",
    "unit": '"TB/s"',
    "kind": '"measured"',
    "source": '"a bench"',
    "date": "2026-11-28",
}
PEAK = GOOD | {"unit": '"TFLOP/s"', "sparsity": '"dense"'}


def read(tmp_path: Path, text: str) -> Machine:
    """The machine in a file with *text*."""
    path = tmp_path / "toy.toml"
    path.write_text(text, encoding="utf-8")
    return load_file(path)


def toy(tmp_path: Path, name: str, fields: dict[str, str]) -> Machine:
    """A machine whose only constant *name* has *fields*."""
    return read(tmp_path, HEAD + f"[{name}]\n" + "".join(f"{key} = {text}\n" for key, text in fields.items()))


def without(fields: dict[str, str], name: str) -> dict[str, str]:
    """*fields* but one."""
    return {key: text for key, text in fields.items() if key != name}


def test_the_toys_are_good_as_they_stand(tmp_path: Path) -> None:
    """What the other tests break is whole before."""
    assert toy(tmp_path, "dram_bandwidth", GOOD)["dram_bandwidth"].as_printed == "3.35 TB/s"
    assert toy(tmp_path, "peak_bf16", PEAK).peak("bf16").sparsity == "dense"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("value", "has no value: give one, or state absent = true"),
        ("unit", "has no unit: state one of GB/s, TB/s"),
        ("kind", "has no kind: state one of datasheet peak"),
        ("source", "has no source: state the document"),
        ("date", "has no date: state the day it was read, e.g. date = 2026-11-28"),
    ],
)
def test_a_constant_without_a_field_is_refused(tmp_path: Path, field: str, message: str) -> None:
    """Value, unit, kind, source and date are each needed."""
    with pytest.raises(MachineDataError, match=rf"toy.toml: \[dram_bandwidth\] {message}"):
        toy(tmp_path, "dram_bandwidth", without(GOOD, field))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": '"TBps"'}, "unknown unit 'TBps': use one of GB/s, TB/s"),
        ({"unit": '"MHz"'}, "is given in MHz, which does not measure it: use one of GB/s, TB/s"),
        ({"kind": '"hearsay"'}, "unknown kind 'hearsay': use one of datasheet peak"),
        ({"source": '" "'}, "has no source"),
        ({"date": '"28 November"'}, "has no date"),
        ({"sourc": '"x"'}, "unknown field 'sourc'"),
        ({"value": '"3.35"'}, "not a number: write it bare"),
        ({"value": "true"}, "not a number"),
        ({"value": "nan"}, "finite"),
        ({"value": "inf"}, "finite"),
        ({"value": "0"}, r"is 0 TB/s: a constant is positive; what is missing is absent = true"),
        ({"value": "-3.35"}, r"is -3.35 TB/s: a constant is positive"),
        ({"value": "3.35e12"}, "beyond any machine: expected between 1e.09 and 1e.15 B/s; check the unit"),
        ({"value": "0.00000335"}, "beyond any machine"),
        ({"sparsity": '"dense"'}, r"has a sparsity: only a peak_\* has one"),
        ({"readings": '"3.4"'}, "readings that are not a list of tables"),
        ({"readings": "[{ value = 3.4, unit = 'TB/s' }]"}, "reading 1 has no source"),
        ({"readings": "[{ value = 3.4, source = 'x' }]"}, "reading 1 has no unit"),
        ({"readings": "[{ source = 'x' }]"}, "reading 1 has no text"),
        ({"readings": "[{ value = 3.4, unit = 'TB/s', source = 'x', sparsity = 'thin' }]"}, "use sparse or dense"),
    ],
)
def test_a_constant_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    """One field wrong at a time, each with its own message."""
    with pytest.raises(MachineDataError, match=message):
        toy(tmp_path, "dram_bandwidth", GOOD | change)


def test_a_peak_that_does_not_say_dense_is_refused(tmp_path: Path) -> None:
    """The most common slip in the field is a factor of two from a sparse datasheet number."""
    with pytest.raises(MachineDataError, match=r"\[peak_bf16\] does not say dense or sparse: state sparsity"):
        toy(tmp_path, "peak_bf16", without(PEAK, "sparsity"))


def test_a_sparse_peak_is_refused_as_the_main_value(tmp_path: Path) -> None:
    """A sparse number may stand among the readings only."""
    with pytest.raises(MachineDataError, match=r"is 'sparse': the main value is the dense peak .* move this number"):
        toy(tmp_path, "peak_bf16", PEAK | {"sparsity": '"sparse"'})
    readings = '[{ value = 6.7, unit = "TFLOP/s", sparsity = "sparse", source = "a leaflet" }]'
    assert toy(tmp_path, "peak_bf16", PEAK | {"readings": readings}).peak("bf16").readings[0].sparsity == "sparse"


def test_an_integer_rate_in_flop_is_refused(tmp_path: Path) -> None:
    """Integers are operations."""
    with pytest.raises(MachineDataError, match="given in TFLOP/s, which does not measure it: use one of TOP/s, POP/s"):
        toy(tmp_path, "peak_int8", PEAK)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"absent": "true", "date": "2026-11-28"}, "has no reason: state why there is no value"),
        ({"absent": "true", "reason": '"none"'}, "has no date"),
        ({"absent": "false", "reason": '"none"', "date": "2026-11-28"}, "says absent = False"),
        ({"absent": "true", "reason": '"none"', "date": "2026-11-28", "value": "0"}, "unknown field 'value'"),
    ],
)
def test_an_absence_without_its_reason_is_refused(tmp_path: Path, fields: dict[str, str], message: str) -> None:
    """Not having a thing is a fact with a reason and a date, and never has a value."""
    with pytest.raises(MachineDataError, match=message):
        toy(tmp_path, "peak_fp8", fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id = ", "toy.toml cannot be read as TOML"),
        ('name = "Toy"\nvendor = "Nobody"\n', "toy.toml has no id"),
        (HEAD + 'aliases = "h100"\n', "aliases that are not a list of names"),
        (HEAD + "tdp = 700\n", r"has tdp outside a table: a constant is a table, \[tdp\]"),
    ],
)
def test_a_file_that_is_not_a_machine_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Bad TOML and a bad head are told apart."""
    with pytest.raises(MachineDataError, match=message):
        read(tmp_path, text)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A missing file is the same error, naming it."""
    with pytest.raises(MachineDataError, match=r"gone.toml cannot be read"):
        load_file(tmp_path / "gone.toml")

# ruff: noqa: E501  (tables)
"""``derive reload``: a record that was changed in any place, and what is none, is refused in one sentence."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.errors import DeriveError
from outputs.record.reading import load
from tests.hostile.junk import CODE, JUNK, junk
from tests.hostile.test_command_line import answer
from tests.hostile.world import examples, harmless
from tests.outputs.command import derive

SECONDS = 15
ATOMS = (
    None, True, False, 0, -1, 1, 2**63, 10**400, 10**4000, 1.5, float("nan"), float("inf"), "", "N", "\x00", "\x1b[31m", "\ud800", "A" * 10_000,
    [], {}, [[]], {"": {}}, [None] * 1000, {"formula": "N", "steps": []}, {"formula": "steps_0", "steps": [{"at": "N", "starts": [0], "values": [10**400]}]},
    {"formula": "steps_0", "steps": [{"at": "N", "starts": [0, 10**400], "values": [1, 2]}]}, "2^255", "N^16^16", "(" * 500, *CODE,
)  # fmt: skip
FILES = {
    "nothing": "",
    "a byte order mark": "\ufeff{}",
    "a list": "[]",
    "a number": "1" * 5000,
    "a number of digits without end": "1" * 1_000_000,
    "text": '"' + "A" * 1_000_000 + '"',
    "lists in lists": "[" * 100_000,
    "closed lists in lists": "[" * 900 + "]" * 900,
    "objects in objects": '{"derivations":' * 100_000,
    "a record that is deep": '{"derivations": [' + '{"name": ' * 450 + "1" + "}" * 450 + "]}",
    "a name that is deep": '{"derivations": [{"name": ' + "[" * 900 + "]" * 900 + "}]}",
    "a name that moves the cursor": '{"derivations": [{"name": "\\u001b[31m", "graphs": [], "start": 0}]}',
    "half a character": '{"derivations": [{"name": "\\ud800", "graphs": [], "start": 0}]}',
    "a key twice": '{"derivations": 1, "derivations": []}',
    "not a number": '{"derivations": [NaN, Infinity, -Infinity]}',
    "many derivations": '{"derivations": [' + ",".join(["{}"] * 100_000) + "]}",
    "many keys": '{"derivations": [{' + ",".join(f'"a{n}": 1' for n in range(100_000)) + "}]}",
    "code": "__import__('os').system('touch canary')",
}  # fmt: skip


@cache
def record() -> Any:
    """What ``derive steps`` writes of a short derivation."""
    return derive("steps", "mha", "--schedule", "flash2", "--json").json


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a record."""
    yield path
    if isinstance(found, dict | list):
        for key, part in found.items() if isinstance(found, dict) else enumerate(found):
            yield from places(part, (*path, key))


@cache
def ways() -> list[tuple[Any, ...]]:
    """All of them but the first, which is the record itself."""
    return list(places(record()))[1:]


def changed(way: tuple[Any, ...], value: Any) -> Any:
    """The record with *value* at the end of *way*."""
    found = copy.deepcopy(record())
    part = found
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = value
    return found


def refused(text: str) -> Exception | None:
    """Loading *text* ends soon, and with derivations or a sentence."""
    begun = time.monotonic()
    refusal = harmless(lambda: load(text), (DeriveError,))
    assert time.monotonic() - begun < SECONDS
    return refusal


def test_the_record_is_good() -> None:
    """What is spoilt below reads back before."""
    assert refused(json.dumps(record())) is None
    assert len(ways()) > 300


@settings(max_examples=examples(80))
@given(data=st.data(), value=st.sampled_from(ATOMS) | junk)
def test_a_value_of_another_kind_in_any_place(data: st.DataObject, value: Any) -> None:
    """Names, numbers, formulas, lists and objects, each replaced by what does not belong there."""
    way = data.draw(st.sampled_from(ways()))
    refused(json.dumps(changed(way, value)))


@settings(max_examples=examples(40))
@given(data=st.data(), key=junk)
def test_a_key_of_another_name_in_any_object(data: st.DataObject, key: str) -> None:
    """Keys are refused by name, and the name is repeated short."""
    way = data.draw(st.sampled_from([w for w in ways() if w[0] == "derivations" and isinstance(w[-1], str)]))
    found = changed(way, None)
    part = found
    for step in way[:-1]:
        part = part[step]
    del part[way[-1]]
    part[key] = 1
    assert refused(json.dumps(found)) is not None


@settings(max_examples=examples(40))
@given(data=st.data())
def test_parts_that_change_places(data: st.DataObject) -> None:
    """A part of the record where another stood."""
    there, from_here = (data.draw(st.sampled_from(ways())) for _ in range(2))
    part = record()
    for key in from_here:
        part = part[key]
    refused(json.dumps(changed(there, part)))


@settings(max_examples=examples(60))
@given(
    st.recursive(
        st.sampled_from(ATOMS[:-1]), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
    )
)
def test_any_json_is_refused(found: Any) -> None:
    """As the record, as its list, as one derivation."""
    for text in (found, {"derivations": found}, {"derivations": [found]}):
        refused(json.dumps(text))


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_file_is_read_or_refused(text: str, tmp_path: Path) -> None:
    """By the command; what a derivation is called never reaches the terminal raw."""
    path = tmp_path / "record.json"
    path.write_text(text, encoding="utf-8")
    found = answer("reload", str(path))
    assert found.code in (0, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]


def test_a_name_is_repeated_printable(tmp_path: Path) -> None:
    """A record that holds in all but its name is read, and its name is escaped."""
    path = tmp_path / "record.json"
    for name in ("\x1b[31m", "\ud800", "two\nlines", "A" * 10_000):
        path.write_text(json.dumps(changed(("derivations", 0, "name"), name)), encoding="utf-8")
        found = answer("reload", str(path))
        assert found.code in (0, 2)
        assert all(line.isprintable() and len(line) < 3000 for line in found.out.splitlines())


def test_graphs_and_steps_without_end_are_refused() -> None:
    """No more graphs than steps may leave, and no more steps than a derivation has."""
    one = record()["derivations"][0]
    for key, many in (("graphs", one["graphs"][:1] * 5_000), ("steps", one["steps"] * 200)):
        assert refused(json.dumps({"derivations": [{**one, key: many}]})) is not None
    graph = one["graphs"][0]
    for key in ("einsums", "masks", "outputs"):
        many = (graph[key] or [{"kind": "causal"}]) * 3_000
        assert refused(json.dumps({"derivations": [{**one, "graphs": [{**graph, key: many}]}]})) is not None


def test_junk_is_no_record() -> None:
    """Each junk word as the whole file."""
    for word in JUNK:
        refused(word)

"""``derive cache`` as a program: its text, its JSON, and what it says to bad questions."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from tests.outputs.command import derive

SCHEMA = json.loads((files("outputs") / "schema" / "cache.json").read_text(encoding="utf-8"))
ASKED = [
    "mha",
    "mha layers=32 h=32 d=128 N=4K",
    "gqa layers=32 windowed=24 W=1024 h=32 hk=8 d=128 N=128K --budget 40GiB",
    "gqa layers=32 windowed=24 mask=sinks sinks=4 W=1020 h=32 hk=8 d=128 N=128K kv=fp8 --budget 4GiB",
    "gqa layers=32 windowed=32 W=1024 h=32 hk=8 d=128 --budget 4GiB",
    "gqa layers=? windowed=? hk=? devices=4",
    "mqa mask=window W=512 layers=8 d=64 --budget 1GiB",
    "decode layers=80 h=64 hk=8 devices=8 d=128 Nk=16K",
    "mha layers=32 d=128 h=32 --budget 1B",
    "gqa layers=32 h=32 hk=8 d=128 N=8191 page=16 --budget 1GiB",
    "gqa layers=? page=? hk=?",
]


@pytest.mark.parametrize("words", ASKED)
def test_the_json_keeps_to_its_schema_and_the_text_prints(words: str) -> None:
    """Numbers or none, windows or none."""
    answer = derive("cache", *words.split(), "--json")
    assert (answer.code, answer.err) == (0, "")
    jsonschema.validate(answer.json, SCHEMA)
    shown = derive("cache", *words.split())
    assert (shown.code, shown.err) == (0, "")
    assert "bytes a token = " in shown.out


def test_the_json_holds_the_known_numbers() -> None:
    """A hybrid stack in 40 GiB."""
    found = derive("cache", *ASKED[2].split(), "--json").json
    assert found["bytes"]["value"] == 4_395_630_592
    assert [slope["value"] for slope in found["bytes_a_token"]] == [131_072, 32_768]
    assert found["longest"]["value"] == 1_307_648
    assert found["elements_a_token_and_layer"]["K"] == {"symbolic": "d*h_k", "value": 1024}


def test_windows_alone_fit_any_length_and_too_little_room_fits_none() -> None:
    """Said in words, and apart in the JSON."""
    words = ["cache", "gqa", "layers=32", "mask=window", "W=1024", "h=32", "hk=8", "d=128", "--budget"]
    assert "longest N in 4 GiB: any: every layer keeps a window alone" in derive(*words, "4GiB").out
    assert derive(*words, "4GiB", "--json").json["longest"]["unbounded"] is True
    assert "longest N in 1 KiB: none: one token does not fit" in derive(*words, "1KiB").out
    assert derive(*words, "1KiB", "--json").json["longest"]["value"] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("mha-backward layers=3", "there is nothing to cache: a backward pass leaves no cache"),
        ("mha layers=3 windowed=4 W=3", "windowed=4 of layers=3: no more layers see a window than there are"),
        ("mha layers=4 windowed=2 mask=causal", "windowed=2 with mask=causal, under which a layer keeps everything"),
        ("mha layers=4 W=7", "W= is used by mask=window"),
        ("mha layers=4 mask=chunk C=8", "mask=chunk keeps now more tokens and now fewer"),
        ("mha layers=4 mask=block-sparse s=0.5", "mask=block-sparse"),
        ("gqa h=6 hk=2 devices=4 layers=1", "devices=4 cannot share 6 query heads evenly"),
        ("mha --budget 40", "--budget 40: a capacity takes a unit"),
        ("mha layers=1 page=0", "page=0: tokens of a page of the cache must be at least 1"),
        ("mha layers=0", "layers=0: layers of the stack must be at least 1"),
        ("matmul layers=x", "layers=x is no number"),
    ],
)
def test_bad_questions_are_answered_in_one_sentence(words: str, says: str) -> None:
    """Exit code 2, the value shown and the way out, and no traceback."""
    answer = derive("cache", *words.split())
    assert answer.code == 2
    assert answer.out == ""
    assert says in answer.err
    assert len(answer.err.splitlines()) == 1


def test_layers_mean_nothing_to_the_other_commands() -> None:
    """They say which command takes the key."""
    answer = derive("explain", "mha", "layers=4")
    assert answer.code == 2
    assert "has no layers (layers of the stack), which `derive cache` takes; leave it out" in answer.err


def test_pages_mean_nothing_to_the_other_commands() -> None:
    """They say which command takes the key; the JSON has the pages' numbers, or null."""
    answer = derive("explain", "mha", "page=16")
    assert answer.code == 2
    assert "has no page (tokens of a page of the cache), which `derive cache` takes; leave it out" in answer.err
    found = derive("cache", *ASKED[-2].split(), "--json").json["paged"]
    assert found["allocated"]["value"] == 8192 * 32 * 4096
    assert found["used"]["value"] == 8191 / 8192
    assert derive("cache", *ASKED[1].split(), "--json").json["paged"] is None

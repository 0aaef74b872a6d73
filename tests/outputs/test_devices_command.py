"""``derive devices`` as a program: its tables, its JSON, and what it says to bad questions."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from hardware import load
from hardware import names as machine_names
from rules.parallel import names
from tests.outputs.command import derive

SCHEMA = json.loads((files("outputs") / "schema" / "devices.json").read_text(encoding="utf-8"))
ASKED = [
    "mha",
    "mha mask=causal",
    "mha devices=8 N=64K d=128 h=32 mask=causal --on h100-sxm",
    "gqa devices=4 N=8K d=128 h=32 hk=2 mask=window W=1000 --on mi300x",
    "gqa devices=4 N=8K d=128 h=? hk=? kv=fp8",
    "mqa devices=2 N=8 d=128 mask=docs docs=3,5",
    "cross devices=2 Nq=8 Nk=16 d=64 mask=causal",
    "decode devices=8 Nk=8K d=128 h=32 hk=8 --on tpu-v5p",
    "mha devices=2 N=1M d=128 mask=block-sparse s=0.1 --link 12.5GB/s --on a100-sxm-80gb",
    "mha devices=4 N=1004 d=64",
    "matmul devices=2 N=8 d=4",
    "mla devices=4 N=64 d=128 dr=64 dc=512 h=8 mask=causal --on h100-sxm",
    "bias devices=2 N=64 d=8",
]


@pytest.mark.parametrize("words", ASKED)
def test_the_json_keeps_to_its_schema_and_the_text_prints(words: str) -> None:
    """Numbers or none, heads or tokens, with and without a link."""
    answer = derive("devices", *words.split(), "--json")
    assert (answer.code, answer.err) == (0, "")
    jsonschema.validate(answer.json, SCHEMA)
    shown = derive("devices", *words.split())
    assert (shown.code, shown.err) == (0, "")
    assert all(name in shown.out for name in (*answer.json["schemes"], *answer.json["refused"]))
    assert {*answer.json["schemes"], *answer.json["refused"]} == set(names())


def test_every_machine_is_a_device() -> None:
    """A machine without a stated link gets closed forms and no time of a link, and the text says why."""
    for machine in machine_names():
        operand = "bf16" if "bf16" in load(machine).dtypes else "fp16"
        words = (
            "devices",
            "mha",
            "devices=2",
            "N=4K",
            "d=64",
            "h=2",
            f"dtype={operand}",
            "--scheme",
            "ring",
            "--on",
            machine,
        )
        found = derive(*words, "--json").json
        jsonschema.validate(found, SCHEMA)
        assert (found["link_bandwidth"] is None) == (found["schemes"]["ring"]["time"] is None)
        assert (found["link_bandwidth"] is None) == ("link_bandwidth" in load(machine).absent)
    assert "give one with --link" in " ".join(derive("devices", "mha", "--on", "tpu-v5p").out.split())


def test_the_json_holds_the_known_numbers() -> None:
    """A causal ring on 8 A100: bytes, blocks, balance."""
    found = derive(
        "devices", "mha", "devices=8", "N=8K", "d=128", "mask=causal", "--on", "a100-sxm-80gb", "--json"
    ).json
    ring = found["schemes"]["ring"]
    assert ring["link"]["value"] == 2 * 8192 * 128 * 2 * 7 // 8
    assert ring["link"]["a_step"]["value"] * 7 == ring["link"]["value"]
    assert ring["block"]["value"] == 1040
    assert ring["balance"]["busiest"] == {
        "symbolic": "(2*N*R - N + R)/(R*(N + 1))",
        "limit": "(2*R - 1)/R",
        "value": "15361/8193",
    }
    assert found["link_bandwidth"] == 3e11
    exposed = ring["time"]["exposed"]
    assert 0 < exposed < ring["time"]["link"]


def test_a_scheme_that_cannot_be_is_listed_with_its_reason() -> None:
    """By default the others are still answered."""
    found = derive("devices", "mha", "devices=4", "N=1004", "--json").json
    assert "nearest that does is N=1008" in found["refused"]["ring-zigzag"]
    assert "ring" in found["schemes"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "mha devices=1",
            "devices=1: one device has nobody to share with; give devices=2 or more, or ask `derive explain`",
        ),
        ("mha devices=3 N=1000", "N=1000 does not divide into 3 devices (ring); the nearest that does is N=999"),
        ("mha devices=8 N=3", "N=3 does not divide into 8 devices (ring); the nearest that does is N=8"),
        ("mha devices=4 N=1004 --scheme ring-zigzag", "N=1004 does not divide into 8 chunks (2 for each device)"),
        ("cross devices=4 Nq=8 Nk=10", "Nk=10 does not divide into 4 devices (ring); the nearest that does is Nk=12"),
        ("decode devices=4 h=8 hk=8 --scheme ring", "decode has 1 query a head, which makes no 4 devices; deal heads"),
        ("gqa devices=8 N=8 h=6 hk=2 --scheme ulysses", "devices=8 cannot share 6 query heads evenly (ulysses)"),
        ("gqa devices=8 N=8 h=6 hk=2 --scheme tensor-parallel", "the nearest number that can is devices=6"),
        ("mha devices=2 N=8 h=1 --scheme ulysses", "cannot share 1 query head evenly (ulysses); deal tokens instead"),
        ("mha devices=2 --scheme rong", "there is no scheme 'rong'; did you mean ring?"),
        ("mha devices=2 --scheme ,", "--scheme names no scheme"),
        ("mha devices=x", "devices=x is no number"),
        ("mha devices=2 --link 5", "--link 5: a bandwidth one way is written such as 12.5GB/s"),
        ("mha devices=2 --link 0GB/s", "--link 0GB/s: a bandwidth one way"),
        ("mha-backward devices=2", "ring schedules a forward pass and this is a backward one"),
        (
            "delta devices=2",
            "delta hands a state on from step to step, and its sharing among devices is not counted yet",
        ),
        ("matmul devices=2 --scheme ulysses", "has no heads, so they cannot be dealt to devices"),
    ],
)
def test_bad_questions_are_answered_in_one_sentence(words: str, says: str) -> None:
    """Exit code 2, the value shown and the way out, and no traceback."""
    answer = derive("devices", *words.split())
    assert answer.code == 2
    assert answer.out == ""
    assert says in answer.err
    assert len(answer.err.splitlines()) == 1


def test_devices_mean_nothing_to_the_other_commands() -> None:
    """They say which command takes the key."""
    answer = derive("explain", "mha", "devices=4")
    assert answer.code == 2
    assert "has no devices (devices that share the work), which `derive devices` takes; leave it out" in answer.err

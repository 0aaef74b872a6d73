"""``derive tiles`` as a program: its table, its JSON, and what it says to bad questions."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import jsonschema
import pytest

from hardware import load
from hardware import names as machine_names
from outputs.request import read_request
from outputs.tile_comparison import OUTSIDE
from outputs.tiles import tiling
from tests.outputs.command import derive

QUESTION = ("tiles", "mha", "N=8192", "d=128", "--on", "h100-sxm")
SCHEMA = json.loads((files("outputs") / "schema" / "tiles.json").read_text(encoding="utf-8"))

ASKED = [
    QUESTION,
    (*QUESTION, "mask=causal", "--stages", "1"),
    (*QUESTION, "--schedule", "flash1"),
    (*QUESTION, "Br=128", "--results-shared"),
    ("tiles", "mha", "N=1024", "d=64", "--schedule", "square", "--on", "mi300x", "--step", "32"),
    ("tiles", "gqa", "N=2K", "d=96", "h=8", "hk=2", "--schedule", "flash2-packed", "--on", "a10g", "dtype=fp16"),
    ("tiles", "decode", "Nk=8192", "d=128", "--on", "b200-sxm", "kv=fp8"),
]


@pytest.mark.parametrize("words", ASKED, ids=lambda w: " ".join(w[1:]))
def test_the_json_keeps_to_its_schema(words: tuple[str, ...]) -> None:
    """Every question's object is valid, and its tiles come in the order of their SM-side bytes."""
    answer = derive(*words, "--json")
    assert (answer.code, answer.err) == (0, "")
    jsonschema.validate(answer.json, SCHEMA)
    sm = [tile["bytes"]["sm"] for tile in answer.json["tiles"]]
    assert sm == sorted(sm)


def test_the_json_holds_what_the_model_says() -> None:
    """Tile for tile the numbers of the ranking, and the published tile with its place in it."""
    from derive.attention import variant

    found = derive(*QUESTION, "--json").json
    model = tiling(read_request(variant("mha"), ("N=8192", "d=128")), "flash2", load("h100-sxm"))
    assert [t["sizes"] for t in found["tiles"]] == [t.sizes for t in model.fitting]
    for tile, expected in zip(found["tiles"], model.fitting, strict=True):
        assert tile["bytes"]["dram"] == expected.dram
        assert tile["bytes"]["shared_to_registers"] == model.to_registers(expected.sizes)
        assert (tile["shared_memory"], tile["registers"]) == (expected.shared, expected.registers)
    (published,) = found["published"]
    assert published["tile"]["sizes"] == {"B_r": 128, "B_c": 176}
    assert (published["rank"], published["of"], published["ratio"]) == (26, 50, 3.25)


def test_the_table_shows_the_best_ten_and_the_published_one() -> None:
    """Ten ranked rows, the published row marked, its source, and what no byte count explains."""
    lines = derive(*QUESTION).out.splitlines()
    ranks = [line.split()[0] for line in lines if line[:1].isdigit()]
    assert ranks == [str(n) for n in range(1, 11)]
    assert sum("128 x 176 (FlashAttention-3)" in line for line in lines) == 1
    text = " ".join(" ".join(lines).split())
    assert "hopper/tile_size.h" in text
    assert OUTSIDE in text


def test_a_published_tile_among_the_best_is_marked_in_its_row() -> None:
    """With its rows given and its choices the published tile is on the list, and stands there once."""
    out = derive("tiles", "mha", "N=8192", "d=256", "Br=128", "--on", "h100-sxm").out
    (line,) = [line for line in out.splitlines() if "128 x 80 (FlashAttention-3)" in line]
    assert line.split()[0] == "5"


@pytest.mark.parametrize("machine", machine_names())
def test_every_machine_answers_or_says_what_it_lacks(machine: str) -> None:
    """One sentence and exit 2 where its file has no shared memory or registers."""
    answer = derive("tiles", "mha", "N=8192", "d=64", "--on", machine, "--step", "64")
    if answer.code:
        assert answer.code == 2
        assert "stated absent" in answer.err
        assert answer.err.count("\n") == 1
    else:
        assert "tiles that fit" in answer.out


BAD: dict[tuple[str, ...], tuple[int, str]] = {
    ("tiles", "mha", "N=8192", "d=128"): (2, "name one with --on"),
    ("tiles", "mha", "--on", "h100-sxm"): (2, "there is none for Nq .* and Nk .* and d .*; write for instance N=8192"),
    ("tiles", "mha", "N=8192", "--on", "h100-sxm"): (2, r"there is none for d \(head dimension of Q and K\); write"),
    ("tiles", "mha", "N=8192", "d=128", "h=?", "--on", "h100-sxm"): (2, "none for h "),
    ("tiles", "mha", "N=8192", "d=4096", "--on", "h100-sxm"): (
        3,
        "no tile of flash2 fits .* largest d that would fit is 908",
    ),
    ("tiles", "mha", "N=8192", "d=128", "Br=8192", "--on", "h100-sxm"): (3, "B_r x B_c = 8192 x 16 needs"),
    (*QUESTION, "--schedule", "naive"): (2, "naive has no tile to choose"),
    (*QUESTION, "--schedule", "flash3"): (2, "no schedule 'flash3'; did you mean flash"),
    (*QUESTION[:-1], "h100-sxn"): (2, "no machine 'h100-sxn'; did you mean h100-sxm"),
    (*QUESTION, "--stages", "0"): (2, "0 is not in the range"),
    (*QUESTION, "--step", "0"): (2, "0 is not in the range"),
    (*QUESTION, "--registers", "192"): (2, "--registers 192: a capacity takes a unit"),
    (*QUESTION, "--registers", "0B"): (2, "at least 1 B"),
    ("tiles", "mha", "N=1M", "d=8", "--on", "l4", "--step", "1", "--stages", "1"): (
        2,
        "leaves more than 20,000 tiles",
    ),
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_a_bad_question_gets_one_sentence(words: tuple[str, ...]) -> None:
    """What is wrong, with the value and the way out, and nothing on stdout."""
    code, sentence = BAD[words]
    answer = derive(*words)
    assert answer.code == code
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert re.search(sentence, answer.err)

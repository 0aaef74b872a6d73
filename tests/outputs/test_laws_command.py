"""``derive laws`` as a program: its tables, its JSON, its LaTeX, and where residency makes a jump."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.outputs.command import derive

SCHEMA = json.loads((files("outputs") / "schema" / "laws.json").read_text(encoding="utf-8"))
ASKED = [
    "mha",
    "mha N=8192 d=128 --on h100-sxm",
    "gqa mask=causal --schedule flash2",
    "decode --schedule flash2,split-kv",
    "cross",
    "mla",
    "mha-backward N=4096 d=64 --on a100-sxm-80gb",
    "ssd",
    "mha mask=docs docs=3,5 --schedule naive",
    "mha mask=block-sparse s=1/8",
    "mha mask=dilated --schedule naive",
]


@pytest.mark.parametrize("words", ASKED)
def test_the_json_keeps_to_its_schema_and_the_text_prints(words: str) -> None:
    """Every schedule has a law for every count, or says that it has none."""
    answer = derive("laws", *words.split(), "--json")
    assert (answer.code, answer.err) == (0, "")
    jsonschema.validate(answer.json, SCHEMA)
    shown = derive("laws", *words.split())
    assert (shown.code, shown.err) == (0, "")
    assert all(f"{name}: exponents" in shown.out for name in answer.json["schedules"])


def _laws(words: str, schedule: str, count: str, symbol: str) -> list[dict[str, Any]]:
    answer = derive("laws", *words.split(), "--schedule", schedule, "--json").json
    return [x for x in answer["schedules"][schedule]["laws"] if (x["count"], x["symbol"]) == (count, symbol)]


def test_heads_stay_open_unless_given_and_kv_bytes_are_linear_in_theirs() -> None:
    """FLOP do not depend on hk; what must be read of K and V is proportional to it."""
    (work,) = _laws("gqa", "flash2", "matmul FLOP, useful", "h_k")
    assert (work["exponents"], work["doubling"], work["where"]) == (["0"], "1", [])
    (kv,) = _laws("gqa", "flash2", "compulsory: K, V", "h_k")
    assert (kv["exponents"], kv["doubling"], kv["evidence"]) == (["1"], "2", "proved")


def test_sm_side_bytes_at_the_best_tile_fall_as_one_over_m() -> None:
    """The class from its linear programs, monomial by monomial: M has the power -1 where d <= M <= N d."""
    answer = derive("laws", "mha", "--schedule", "flash2", "--json").json
    (falls,) = [x for x in answer["schedules"]["flash2"]["classes"] if x["symbol"] == "M" and x["exponent"] != "0"]
    assert (falls["term"], falls["exponent"], falls["where"]) == ("N^2 d^2/M", "-1", "d <= M and M <= N d")


def test_dram_bytes_jump_where_residency_fails() -> None:
    """At the N of `derive explain`, from what is read once to four waves that read it again; both as the engine counts them."""
    words = ("d=128", "--schedule", "flash2", "--on", "h100-sxm", "--json")
    jump = derive("laws", "mha", "N=8192", *words).json["schedules"]["flash2"]["jump"]
    explained = derive("explain", "mha", "N=8192", *words).json["schedules"]["flash2"]["residency"]["threshold"]
    assert jump["at"] == explained["value"] == 102_400
    for length, known in ((jump["at"], jump["before"]), (jump["at"] + 1, jump["after"])):
        counted = derive("explain", "mha", f"N={length}", *words).json["schedules"]["flash2"]["bytes"]["dram"]["value"]
        assert counted == known
    assert jump["before"] == 4 * 102_400 * 128 * 2 < jump["after"] / 3


def test_numbers_outside_a_regime_say_so() -> None:
    """B_r = 100 does not divide N: the law is printed, and marked as not holding here."""
    (found,) = _laws("mha N=8192 d=128 Br=100", "flash2", "SM-side: K, V", "B_r")
    assert (found["holds_here"], found["doubling_here"], found["whole"]) == (False, None, ["N/B_r"])
    assert "outside" in derive("laws", "mha", "N=8192", "d=128", "Br=100", "--schedule", "flash2").out


def test_packed_documents_have_laws_where_tiles_divide_them_all() -> None:
    """Of 512, 512 and 1024 it is 512 that tiles divide: K and V are n^2/(2 B_r) + n/2 keys a document."""
    (found,) = _laws("mha mask=docs docs=512,512,1024", "flash2", "SM-side: K, V", "B_r")
    assert (found["exponents"], found["evidence"]) == (["-1", "0"], "checked")
    assert found["whole"] == ["512/B_r", "512/B_c", "B_r/B_c"]
    said = derive("laws", "mha", "mask=docs", "docs=512,512,1024", "--schedule", "flash2").out
    assert "B_c divides B_r; B_r divides 512" in said
    few = derive("laws", "mha", "mask=docs", "docs=3,5", "--schedule", "flash2").out
    assert "B_r: 6 not looked at, fewer than 6 values of B_r divide all of 3, 5" in few


def test_a_count_without_a_law_shows_what_speaks_against_one() -> None:
    """Its values, printed and in the JSON, along a symbol that alone takes other values."""
    asked = ("laws", "cascade", "mask=window", "--schedule", "cascade")
    answer = derive(*asked, "--json").json["schedules"]["cascade"]["open"]
    assert answer
    for one in answer:
        assert len(one["points"]) == len(one["values"]) == len({p[one["symbol"]] for p in one["points"]}) == 6
    shown = " ".join(derive(*asked).out.split())
    assert "cascade: undecided" in shown
    assert all(x["why"].split(" at ")[0].split(",")[0] in shown for x in answer)


def test_a_latex_table_is_written_and_kept(tmp_path: Path) -> None:
    """One table a schedule; a file that exists is kept unless --force."""
    target = tmp_path / "laws.tex"
    assert derive("laws", "gqa", "mask=window", "--schedule", "naive", "-o", str(target)).code == 0
    written = target.read_text(encoding="utf-8")
    assert r"\begin{tabular}" in written
    assert written.count("{") == written.count("}")
    again = derive("laws", "mha", "-o", str(target))
    assert (again.code, "exists; add --force" in again.err) == (2, True)
    assert derive("laws", "mha", "-o", str(target), "--force").code == 0
    wrong = derive("laws", "mha", "-o", "laws.pdf")
    assert (wrong.code, wrong.err) == (
        2,
        "error: Invalid value: -o laws.pdf: only FILE.tex is written; use --json for data\n",
    )

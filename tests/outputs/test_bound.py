"""``derive bound``: its schema over variants, what is printed, its LaTeX, and bad input in one sentence."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from derive.growth.reading import read_condition, read_monomial
from tests.outputs.command import derive, tex_or_skip

VALIDATOR = jsonschema.Draft202012Validator(
    json.loads((files("outputs") / "schema" / "bound.json").read_text(encoding="utf-8"))
)


@cache
def bound(*words: str) -> Any:
    """The object for a question; tests must leave it as it is."""
    answer = derive("bound", *words, "--json")
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.json


QUESTIONS = {
    "closed": ("mha",),
    "numbers": ("mha", "N=8192", "d=128", "--on", "h100-sxm"),
    "heads": ("gqa", "h=?", "hk=?", "B=?"),
    "widths": ("mha", "d=?", "dv=?", "scores=fp32", "--schedule", "flash2,naive"),
    "causal": ("mha", "mask=causal"),
    "window": ("mha", "mask=window", "--schedule", "flash1,flash2"),
    "chunk": ("mha", "mask=chunk", "--schedule", "flash2"),
    "chunk-tl": ("mha", "mask=chunk-tl", "--schedule", "flash1,flash2"),
    "sinks": ("mha", "mask=sinks", "--schedule", "flash1,flash2"),
    "global-local": ("mha", "mask=global-local", "--schedule", "flash1"),
    "density": ("mha", "mask=block-sparse", "--schedule", "flash1,flash2"),
    "decode": ("decode",),
    "backward": ("mha-backward",),
    "matmul": ("matmul",),
    "cross": ("cross", "--where", "Nq <= Nk"),
    "causal, lengths apart": ("cross", "mask=causal", "--schedule", "flash2"),
    "window, lengths apart": ("cross", "mask=window", "--schedule", "flash1,flash2"),
    "sinks from the first": ("cross", "mask=sinks-tl", "--schedule", "flash1,flash2"),
    "global-local, lengths apart": ("cross", "mask=global-local", "--schedule", "flash1,flash2"),
    "global-local from the first": ("cross", "mask=global-local-tl", "--schedule", "flash2"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_answer_has_the_schema_and_reads_back(question: str) -> None:
    """No unknown key; every class, regime and bound is a monomial that the reader takes."""
    found = bound(*QUESTIONS[question])
    VALIDATOR.validate(found)
    for schedule in found["schedules"].values():
        for monomial in schedule["theta"]:
            assert read_monomial(monomial) is not None
        for lead in schedule["leads"]:
            assert not lead["regime"] or [c for part in lead["regime"].split(" and ") for c in read_condition(part)]
    for each in found["lower_bounds"]:
        assert each["status"] == "derived" or each["source"]
        assert each["status"] == "cited" or each["constant"]


def test_the_best_schedule_by_regime_is_what_the_paper_proves() -> None:
    """Saha & Ye 2024, arXiv:2402.07443, theorem 3.1: N^2 d/sqrt(M) up to M = d^2, N^2 d^2/M up to N d, then N d."""
    found = {r["theta"]: (r["regime"], r["schedule"]) for r in bound("mha", "--where", "d <= N")["best"]}
    assert found == {
        "N**2*d/sqrt(M)": ("M <= d**2", "square"),
        "N**2*d**2/M": ("d**2 <= M <= N*d", "flash1"),
        "N*d": ("N*d <= M", "flash1"),
    }


@pytest.mark.parametrize("question", sorted(set(QUESTIONS) - {"numbers", "widths", "cross"}))
def test_no_schedule_that_fits_is_below_a_lower_bound(question: str) -> None:
    """Only a schedule that is granted its operands may claim less, and then the answer says that it cannot have them."""
    for schedule in bound(*QUESTIONS[question])["schedules"].values():
        assert schedule["granted"] or all(gap["attainable"] for gap in schedule["gaps"])


@pytest.mark.parametrize(
    ("question", "monomials", "assumed"),
    [
        ("window", {"N*d", "N*W*d**2/M"}, ["2*W <= N"]),
        ("chunk", {"N*d", "C_k*N*d**2/M"}, ["2*C_k <= N"]),
        ("sinks", {"N*d", "N*N_s*d**2/M", "N*W*d**2/M"}, ["4*N_s <= N", "4*W <= N"]),
        ("causal, lengths apart", {"N_k*d", "N_k*N_q*d**2/M"}, ["N_q <= N_k"]),
        ("window, lengths apart", {"N_q*d", "W*d", "N_q*W*d**2/M"}, ["4*W <= N_k", "4*N_q <= N_k"]),
        ("sinks from the first", {"N_q*d", "N_q*N_s*d**2/M", "N_q*W*d**2/M"}, ["4*N_s <= N_q <= N_k", "4*W <= N_q"]),
    ],
)
def test_the_class_under_a_mask_is_of_the_keys_a_query_sees(
    question: str, monomials: set[str], assumed: list[str]
) -> None:
    """N rows, each of as many keys: the dense class with a size of the mask in the place of one N."""
    found = bound(*QUESTIONS[question])
    assert set(found["schedules"]["flash2"]["theta"]) == monomials
    assert (
        found["assumed"].split(" and ") == assumed if isinstance(found["assumed"], str) else found["assumed"] == assumed
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("mask=docs", "docs=512,512"), "mask=docs is a list for one length"),
        (("mask=dilated",), "a query's keys stand apart"),
    ],
)
def test_a_mask_without_a_class_says_why(words: tuple[str, ...], why: str) -> None:
    """One sentence with the way out, and no class that is not derived."""
    answer = derive("bound", "mha", *words)
    assert (answer.code, answer.out) == (2, "")
    assert why in answer.err
    assert "derive explain" in answer.err


def test_selected_keys_have_classes_under_their_own_limits() -> None:
    """No more blocks are selected than there are, and sizes without a default divide, whatever they are."""
    found = bound("nsa", "--schedule", "flash2,per-query")
    assert found["assumed"] == "d_s <= l_c and d_s <= l_s <= N_k and n_b <= N_k/l_s and W <= N_k"
    for schedule in ("flash2", "per-query"):
        assert {*found["schedules"][schedule]["theta"]} == {"W*d", "d*l_s*n_b", "N_k*d/d_s", "N_k*l_c/d_s**2"}
    causal = bound("topk", "mask=causal", "--schedule", "per-query")
    assert causal["assumed"] == "n_t <= N"
    assert ("N*n_t", "1/2") in {(lower["theta"], lower["constant"]) for lower in causal["lower_bounds"]}


def test_flash2_is_tight_where_the_theorem_says() -> None:
    """For d^2 <= M <= N d; below d^2 a factor d/sqrt(M) is lost."""
    gaps = {g["regime"]: g for g in bound("mha", "--where", "d <= N")["schedules"]["flash2"]["gaps"]}
    assert gaps["d**2 <= M <= N*d"]["tight"]
    (below,) = [g for g in gaps.values() if not g["tight"] and g["monomial"] == "N**2*d**2/M"]
    assert below["ratio"] == "d/sqrt(M)"


def test_numbers_stand_in_columns_of_their_own() -> None:
    """Class, leading term at its constant, exact bytes at the best tiles, exact bytes at the usual ones."""
    here = bound(*QUESTIONS["numbers"])["schedules"]["flash2"]["here"]
    assert here["monomial"] == "N**2*d**2/M"
    assert here["leading_term_bytes"] == 4 * 8192**2 * 128**2 * 2 // 116_736
    assert here["these_tiles"] == {"tiles": {"B_r": 128, "B_c": 128}, "sm_bytes": 260 * 2**20}
    rows = (116_736 - 2 * 128) // (2 * 128 + 3)
    assert here["best_tiles"] == {"tiles": {"B_r": rows, "B_c": 1}, "sm_bytes": 4 * 2**20 * (1 + -(-8192 // rows))}


def test_the_text_says_class_constant_regime_and_bytes() -> None:
    """What a person at a terminal reads, in one screen or two."""
    text = derive("bound", "mha", "N=8192", "d=128", "--on", "h100-sxm").out
    flat = " ".join(text.split())
    for words in (
        "Theta(N d + N^2 d^2/M)",
        "no tiles do better: (N^2 d/B_r) * (B_r d / M) = N^2 d^2/M",
        "4 N^2 d^2/M at the best tiles",
        "6 N^2 d^2/M at the best tiles, 12 N^2 d^2/M at the published ones",
        "equal where d = 2 B_r; flash2 moves less while d < 2 B_r",
        "M = 116,736 elements of bf16 (228 KiB)",
        "left out: N^2 d/M <= N^2 d^2/M, since 1 <= d",
        "a class is no byte count",
    ):
        assert words in flat
    assert not re.search(r"\*\*|Fraction|sqrt\(M\)\*|Symbol", text)


def test_tensors_of_several_widths_have_no_leading_term_in_bytes() -> None:
    """fp32 scores among bf16 operands: elements have no one size."""
    found = bound("mha", "N=8192", "d=128", "M=116736", "scores=fp32", "--schedule", "naive")
    assert found["schedules"]["naive"]["here"]["leading_term_bytes"] is None
    assert found["schedules"]["naive"]["here"]["these_tiles"]["sm_bytes"] == 1032 * 2**20


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("mha", "--where", "M <= d", "--schedule", "flash2"),
            "no tiles fit: they need d <= M, which the regime rules out",
        ),
        (("mha", "--where", "d^2 <= M", "--where", "M <= d"), "contradicts itself"),
        (("mha", "--where", "h <= d"), "speaks of h, which the count does not depend on"),
        (("mha", "--where", "2 d <= M"), "leave constants out"),
        (("mha", "--where", "d < M"), "is no regime; write monomials joined by <="),
        (("mha", "--where", "__import__('os') <= M"), "is no monomial"),
        (("mha", "--schedule", "flsh2"), "did you mean flash2?"),
        (("mha", "--schedule", ","), "names no schedule"),
        (("mah",), "did you mean mha?"),
        (("mha", "-o", "x.pdf"), "only FILE.tex is written"),
        (
            ("cross", "mask=global-local", "--where", "Nk <= Nq", "--schedule", "flash2"),
            "give a regime that says which is larger",
        ),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], says: str) -> None:
    """Exit code 2, nothing on stdout."""
    answer = derive("bound", *words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err


def test_the_document_has_every_class_and_compiles(tmp_path: Path) -> None:
    """Amsmath and booktabs are all it needs; no line sticks out."""
    target = tmp_path / "bound.tex"
    answer = derive("bound", "mha", "--where", "d <= N", "-o", str(target))
    assert answer.code == 0
    source = target.read_text(encoding="utf-8")
    assert r"\frac{N^{2} d^{2}}{M}" in source
    assert r"d \le M \le N d" in source
    tex_or_skip("lmodern.sty")
    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", target.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert "Overfull" not in ran.stdout

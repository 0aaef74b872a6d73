"""The text on the terminal: the numbers are those of the JSON, each with its unit, within the terminal's width."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from derive.attention import names as variant_names
from derive.attention import variant as find_variant
from tests.outputs.command import derive, derive_process, numbers_for

QUESTION = ("mha", "N=8192", "d=128", "--on", "h100-sxm")


def text(*words: str) -> str:
    """What ``derive explain`` prints."""
    answer = derive("explain", *words)
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer.out


def test_the_running_example_reads_as_its_derivation() -> None:
    """520, 260 and 8 MiB, their closed forms, the roofline and the threshold all stand in the text."""
    out = text(*QUESTION)
    for words in (
        "2 N d b (1 + ceil(N/B_r))",
        "260 MiB",
        "520 MiB",
        "8 MiB",
        "4 N^2 d",
        "34,359,738,368 FLOP",
        "34.73 us",
        "162.8 us",
        "295.3 FLOP/B",
        "compute-bound",
        "bandwidth-bound",
        "102,400",
    ):
        assert words in out, words


@pytest.mark.parametrize("name", variant_names())
def test_every_number_of_a_question_stands_in_its_head(name: str) -> None:
    """Each as it was typed, one length as N, whichever of queries and keys the variant has."""
    given = numbers_for(name, 1020)
    schedule = find_variant(name).schedules[-1]
    head = text(name, *given, "--schedule", schedule).split("\n\n")[0]
    for _, value in (word.split("=") for word in given):
        assert re.search(rf"\b\w+ = {int(value):,}\b", head), (value, head)


ASKED = [
    (name, mask)
    for name, mask in product(variant_names(), ("full", "causal", "causal-tl"))
    if find_variant(name).own_mask in (None, mask) and find_variant(name).takes(mask)
]


@pytest.mark.parametrize(("variant", "mask"), ASKED)
def test_every_exact_count_of_the_json_is_in_the_text(variant: str, mask: str) -> None:
    """FLOPs and the three byte counts are printed to the last digit, with their unit."""
    masked = (f"mask={mask}",) if find_variant(variant).own_mask is None else ()
    words = (variant, *numbers_for(variant, 1020), *masked, "--on", "h100-sxm")
    out = text(*words)
    schedules: dict[str, Any] = derive("explain", *words, "--json").json["schedules"]
    for name, schedule in schedules.items():
        for level, moves in schedule["bytes"].items():
            assert f"{moves['value']:,} B" in out, (name, level)
        for kind, unit in (("matmul", "FLOP"), ("executed", "FLOP"), ("exp", "exp")):
            assert f"{schedule['flops'][kind]['value']:,} {unit}" in out, (name, kind)


def test_without_numbers_there_are_closed_forms_alone() -> None:
    """``derive explain mha`` answers in symbols: no byte count, no time, no invented default."""
    out = text("mha")
    assert "2 N d b (1 + ceil(N/B_r))" in out
    assert "4 N^2 d" in out
    assert not re.search(r"\d (MiB|KiB|us|ms|TB/s)\b", out)


def test_sizes_are_binary_and_rates_decimal() -> None:
    """Whatever is moved is in KiB, MiB, GiB; whatever flows is in GB/s or TB/s: no MB, no GiB/s."""
    out = "\n".join(line for line in text(*QUESTION).splitlines() if not line.startswith("on "))  # names say 80GB
    assert re.search(r"\d MiB\b", out)
    assert re.search(r"\d TB/s", out)
    assert not re.search(r"\d\s*[KMGT]i?B/s", re.sub(r"\d\s*[KMGT]B/s", "", out))
    assert not re.search(r"\d\s*[kKMGT]B(?!/s)\b", out)


@pytest.mark.parametrize("convention", ["exact", "half", "dense", "tiled"])
def test_the_convention_is_always_said(convention: str) -> None:
    """A count of masked work without its convention is no answer."""
    out = text("mha", "N=1000", "d=64", "mask=causal", "--convention", convention)
    heading = next(line for line in out.splitlines() if line.startswith("work"))
    assert {"exact": "exact", "half": "half", "dense": "dense", "tiled": "tile"}[convention] in heading


@pytest.mark.parametrize(("mask", "says"), [("causal", "bottom-right"), ("causal-tl", "top-left")])
def test_a_causal_mask_says_how_it_is_aligned(mask: str, says: str) -> None:
    """With N_q and N_k apart, a causal mask has two meanings, and the text says which it took."""
    assert says in "\n".join(text("cross", "Nq=2", "Nk=5", "d=64", f"mask={mask}").splitlines()[:4])


def test_every_time_names_its_rate_and_where_it_comes_from() -> None:
    """A time is bytes or FLOPs over a rate, and the rate's kind stands with it."""
    out = text(*QUESTION)
    assert "dram_bandwidth = 3.35 TB/s, datasheet peak" in out
    assert "peak_bf16 = 989.4 TFLOP/s" in out


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
@pytest.mark.parametrize("words", [QUESTION, ("mha",), ("gqa", "N=8K", "d=128", "h=32", "hk=8", "mask=causal")])
def test_no_line_is_wider_than_the_terminal(columns: int, words: tuple[str, ...]) -> None:
    """COLUMNS is obeyed: nothing is left for the terminal to break, and nothing is cut off."""
    answer = derive_process("explain", *words, COLUMNS=str(columns))
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= columns
    assert "\N{HORIZONTAL ELLIPSIS}" not in answer.out


def test_a_narrow_terminal_loses_no_number() -> None:
    """At 80 columns every number of the wide layout is still there."""

    def numbers(columns: str) -> set[str]:
        out = derive_process("explain", *QUESTION, COLUMNS=columns).out
        return set(re.findall(r"\d[\d,.]*\d", re.sub(r"\s+", " ", out)))

    assert numbers("200") <= numbers("80")


@pytest.mark.parametrize(("variant", "number"), list(product(variant_names(), [False, True])))
def test_no_name_of_python_shows(variant: str, number: bool) -> None:
    """The text is mathematics and words: no SymPy spelling and no None."""
    out = text(variant, *((w for w in numbers_for(variant)[1:] if not w.startswith("C=")) if number else ()))
    for word in ("None", "ceiling(", "Piecewise", "Max(", "Min(", "**", "Symbol", "inf", "nan"):
        assert not re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", out), word


def test_no_line_ends_in_a_space() -> None:
    """Text that is pasted somewhere else carries no invisible padding."""
    padded = [line for line in text(*QUESTION).splitlines() if line != line.rstrip()]
    assert padded == []

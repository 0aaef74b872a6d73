"""Whatever a person types wrong gets one sentence that says what was wrong, and nothing else happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.outputs.command import Answer, derive, derive_process

LONG = "A" * 100_000
MANY_DIGITS = "9" * 401

UNKNOWN = {
    ("explain", "mha", "splits=4"): r"splits=4 \(.*\) is used by none of naive, flash2; leave it out",
    ("explain", "mha", "Bd=16"): r"Bd=16 \(.*\) is used by none of naive, flash2; leave it out",
    ("explain", "mhaa"): "no variant 'mhaa'; did you mean mha",
    ("explain", "GQA-repeat"): "no variant 'GQA-repeat'; did you mean gqa-repeated",
    ("explain", "zzzz"): "no variant 'zzzz'; `derive variants` lists the",
    ("explain", "mha", "--on", "h100-sxn"): "no machine 'h100-sxn'; did you mean h100-sxm",
    ("explain", "mha", "--on", "../data/l4"): r"no machine '\.\./data/l4'",
    ("explain", "mha", "--on", ""): "machine",
    ("explain", "mha", "--schedule", "flash3"): "no schedule 'flash3'; did you mean flash",
    ("explain", "mha", "--schedule", "flsah2"): "no schedule 'flsah2'; did you mean flash2",
    ("explain", "mha", "--schedule", ","): "names no schedule",
    ("explain", "mha", "mask=casual"): "no mask 'casual'; did you mean causal",
    ("explain", "mha", "dtype=bf17"): "no element type 'bf17'; did you mean bf16",
    ("explain", "mha", "Q=3"): "no symbol 'Q'; did you mean Nq",
    ("explain", "mha", "dype=bf16"): "no symbol 'dype'; did you mean dtype",
    ("explain", "mha", "--convention", "haft"): "'haft' is not one of 'exact', 'half'",
    ("explain", "mha", "--order", "row"): "'row' is not one of 'head', 'query'",
    ("explain", "mha", "--sweep", "zigzag"): "'zigzag' is not one of 'forward', 'sawtooth'",
    ("explain", "mha", "N=8192", "--frobnicate"): "No such option '?--frobnicate",
    ("explain", "mha", "--jsn"): "No such option '?--jsn",
    ("expain", "mha"): "no command 'expain'; did you mean explain",
    ("machines", "h100-sxn"): "no machine 'h100-sxn'; did you mean h100-sxm",
    ("variants", "mha"): "unexpected extra argument",
    ("check", "mhaa"): "no variant 'mhaa'; did you mean mha",
    ("check", "mha", "--samples", "0"): "0 is not in the range",
    ("check", "mha", "--samples", "many"): "'many' is not a valid integer",
}
MISSING = {
    ("explain",): "Missing argument 'VARIANT'",
    ("steps",): "Missing argument 'VARIANT'",
    ("explain", "mha", "N"): "N is not KEY=VALUE; write for instance N=8192",
    ("explain", "mha", "N="): "N= is not KEY=VALUE",
    ("explain", "mha", "=3"): "=3 is not KEY=VALUE",
    ("explain", "mha", ""): "is not KEY=VALUE",
    ("explain", "mha", "--on"): "requires an argument",
}
SIZES = {
    ("explain", "mha", "N=0"): "N=0: .* at least 1",
    ("explain", "mha", "N=-1"): "N=-1: .* at least 1",
    ("explain", "mha", "d=0"): "d=0: .* at least 1",
    ("explain", "mha", "Br=0"): "Br=0: .* at least 1",
    ("explain", "mha", "N=1e6"): "N=1e6: .* whole number written out, such as 8192",
    ("explain", "mha", "N=1E6"): "N=1E6: .* whole number",
    ("explain", "mha", "N=8192.5"): "N=8192.5: .* whole number",
    ("explain", "mha", "N=8192.0"): "N=8192.0: .* whole number",
    ("explain", "mha", "N=.5"): "N=.5: .* whole number",
    ("explain", "mha", "N=nan"): "N=nan is no number",
    ("explain", "mha", "N=inf"): "N=inf is no number",
    ("explain", "mha", "N=1_000"): "N=1_000 is no number",
    ("explain", "mha", "N=1,000"): "N=1,000 is no number",
    ("explain", "mha", "N=0x10"): "N=0x10 is no number",
    ("explain", "mha", "N=2**13"): r"N=2\*\*13 is no number",
    ("explain", "mha", f"N={10**25}"): r"beyond .*is no attention kernel's",
    ("explain", "mha", f"N={10**400}"): "beyond 10.24, the largest size taken",
    ("explain", "mha", f"N={MANY_DIGITS}"): "beyond 10.24, the largest size taken",
    ("explain", "mha", "d=2M"): "d=2M: .* beyond 1048576",
    ("explain", "mha", "Bc=2M"): "Bc=2M: .* beyond 1048576",
    ("explain", "gqa", "h=32", "hk=7"): "hk=7 does not divide h=32",
    ("explain", "gqa", "h=2", "hk=4"): "hk=4 does not divide h=2",
    ("explain", "decode", "h=32", "hk=5", "Nk=8192"): "hk=5 does not divide h=32",
    ("explain", "mha", "hk=4"): "mha has no hk .*; try gqa",
    ("explain", "decode", "Nq=3"): "decode has no Nq .* fixed by the variant",
    ("explain", "mha", "N=8192", "Nk=4096"): "N_k is given twice, by N=8192 and by Nk=4096",
    ("explain", "mha", "d=64", "d=128"): "d is given twice, by d=64 and by d=128",
    ("explain", "mha", "mask=full", "mask=causal"): "mask is given twice",
    ("explain", "mha", "N=8192MiB"): "N=8192MiB: .* takes no unit",
    ("explain", "mha", "N=8KB"): "N=8KB: .* takes no unit",
    ("explain", "mha", "M=228KiB"): "M is counted in elements, not bytes; 228KiB of bf16 is M=116736",
    ("explain", "mha", "L2=50"): "L2=50: a capacity takes a unit, such as 50MiB",
    ("explain", "mha", "L2=0MiB"): "L2=0MiB: a capacity is a whole number of bytes, at least 1 B",
    ("explain", "mha", "L2=0.3B"): "L2=0.3B: a capacity is a whole number of bytes",
}
MASKED = {
    ("explain", "mha", "mask=widow", "W=4"): "no mask 'widow'; did you mean window",
    ("explain", "mha", "mask=window", "W=0"): "W=0: .* at least 1",
    ("explain", "mha", "mask=window", "W=-1"): "W=-1: .* at least 1",
    ("explain", "mha", "mask=window", "left=-1", "right=0"): "left=-1: .* at least 0",
    ("explain", "mha", "mask=window", "left=4"): "mask=window with left= needs right= too",
    ("explain", "mha", "mask=window", "W=4", "left=4", "right=4"): "left= is used by|W= is used by|right= is used by",
    ("explain", "mha", "W=1024", "N=8192"): "W= is used by mask=window or sinks or dilated, and the mask is full",
    ("explain", "mha", "mask=causal", "C=64"): "C= is used by mask=chunk, and the mask is causal",
    ("explain", "mha", "docs=512,512"): "docs= is used by mask=docs or docs-full, and the mask is full",
    ("explain", "mha", "mask=docs"): "mask=docs needs the lengths of the documents",
    ("explain", "mha", "mask=docs", "docs=512,512", "N=1000"): "are 1024 tokens together, and N_q is 1000",
    ("explain", "mha", "mask=docs", "docs=512,,512"): "docs=512,,512: a list of lengths",
    ("explain", "mha", "mask=docs", "docs=512,0"): "docs=0: .* at least 1",
    ("explain", "mha", "mask=docs", "docs=a,b"): "docs=a is no number",
    ("explain", "decode", "mask=docs", "docs=512"): "decode has queries and keys of two sequences",
    (
        "explain",
        "mha-backward",
        "mask=dilated",
        "--schedule",
        "flash2-backward-split",
    ): "tiles skipped under dilated in parts of the keys would be added up .*; leave the parts out",
    (
        "explain",
        "mha-backward",
        "mask=block-sparse",
        "s=0.5",
        "--schedule",
        "flash2-backward-split",
    ): "split-sums does not apply: it needs that a mask says which keys each query sees",
}
HOSTILE = {
    ("explain", "mha", "N=__import__('os').system('x')"): "is no number",
    ("explain", "mha", "d=().__class__.__base__.__subclasses__()"): "is no number",
    ("explain", "mha", "N=lambda: 1"): "is no number",
    ("explain", "mha", "__import__('os')=1"): "no symbol",
    ("explain", "__import__('os').system('x')"): "no variant",
    ("explain", "mha", "mask=__class__"): "no mask",
    ("explain", "mha", "dtype=().__class__"): "no element type",
    ("explain", "mha", "--schedule", "__init__"): "no schedule",
    ("explain", "mha", "--on", "__init__"): "no machine",
    ("explain", "mha", "N=\u0663\u0664"): "is no number",  # Arabic-Indic digits
    ("explain", "mha", "N=\uff18\uff11\uff19\uff12"): "is no number",  # full-width digits
    ("explain", "mha", "N=8\u2009192"): "is no number",  # a thin space
    ("explain", "mha", "N=\u00b2"): "is no number",  # superscript two
    ("explain", "mha", "N=\u22121"): "is no number",  # the minus sign of typography
    ("explain", "mha", "\uff2e=8192"): "no symbol",  # full-width N
    ("explain", "mha", "\u039d=8192"): "no symbol",  # Greek capital nu
    ("explain", "mha", "N=8192\u212a"): "is no number",  # the kelvin sign
    ("explain", "mha", "N=8192\x00"): "is no number",
    ("explain", "mha\x00"): "no variant",
    ("explain", "mha", "N=8192\n"): "is no number",
    ("explain", "mha", "N=8192\nerror: all is well"): "is no number",
    ("explain", "mha", "N=8\x1b[31m"): "is no number",
    ("explain", "mha\x1b[31m"): "no variant",
    ("explain", "mha", "\x1b[31m=8"): "no symbol",
    ("explain", "mha", "--on", "\x1b[31m"): "no machine",
    ("explain", "mha", f"N={LONG}"): "is no number",
    ("explain", "mha", f"{LONG}=8192"): "no symbol",
    ("explain", "mha", LONG): "is not KEY=VALUE",
    ("explain", LONG): "no variant",
    ("explain", "mha", f"mask={LONG}"): "no mask",
    ("explain", "mha", "--schedule", LONG): "no schedule",
    ("explain", "mha", "--on", LONG): "no machine",
    ("explain", "mha", "N=" + "(" * 10_000): "is no number",
}
IMPOSSIBLE = {
    (
        "mha",
        "N=8192",
        "d=256",
        "Br=256",
        "Bc=256",
        "--on",
        "h100-sxm",
    ): "384 KiB .* 227 KiB; the largest B_c that fits is 64",
    ("mha", "N=8192", "d=128", "Br=1024", "--on", "a100"): "flash2 with B_r=1024 .* the largest B_r that fits is",
    (
        "mha",
        "N=8192",
        "d=128",
        "--schedule",
        "row-resident",
        "--on",
        "h100-sxm",
    ): "even tiles of one row do not fit: .* N_k",
}


def refused(answer: Answer, says: str, code: int = 2) -> None:
    """Assert that *answer* is one sentence on stderr which matches *says*, and nothing else."""
    assert "Traceback" not in answer.err
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("error: ")
    assert answer.err.endswith("\n")
    line = answer.err[:-1]
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert len(line) < 500
    assert re.search(says, line), line


def _ids(table: dict[tuple[str, ...], str]) -> list[str]:
    return [ascii(" ".join(words))[1:60] for words in table]


@pytest.mark.parametrize(("words", "says"), list(UNKNOWN.items()), ids=_ids(UNKNOWN))
def test_an_unknown_name_gets_the_nearest_known_one(words: tuple[str, ...], says: str) -> None:
    """Variant, machine, schedule, mask, type, symbol, option and command alike."""
    refused(derive(*words), says)


@pytest.mark.parametrize(("words", "says"), list(MISSING.items()), ids=_ids(MISSING))
def test_what_is_missing_is_named(words: tuple[str, ...], says: str) -> None:
    """A word that is half there gets the other half explained."""
    refused(derive(*words), says)


@pytest.mark.parametrize(("words", "says"), list(SIZES.items()), ids=_ids(SIZES))
def test_a_size_that_cannot_be_is_refused_with_its_value(words: tuple[str, ...], says: str) -> None:
    """Zero, negative, fractional, absurd, indivisible, given twice, or in the wrong unit."""
    refused(derive(*words), says)


@pytest.mark.parametrize(("words", "says"), list(MASKED.items()), ids=_ids(MASKED))
def test_a_mask_and_its_sizes_must_go_together(words: tuple[str, ...], says: str) -> None:
    """A size that no key can have, one that the mask does not use, and documents that do not add up."""
    refused(derive(*words), says)


@pytest.mark.parametrize(("words", "says"), list(HOSTILE.items()), ids=_ids(HOSTILE))
def test_no_input_is_run_echoed_raw_or_taken_for_a_digit(words: tuple[str, ...], says: str) -> None:
    """Code stays text, control characters are escaped, look-alikes are no digits, and a message stays short."""
    refused(derive(*words), says)


@pytest.mark.parametrize(("words", "says"), list(IMPOSSIBLE.items()), ids=_ids(IMPOSSIBLE))
def test_tiles_that_do_not_fit_get_the_largest_that_do(words: tuple[str, ...], says: str) -> None:
    """Exit code 3: the words are right, the machine cannot do it; the largest that fits is named."""
    refused(derive("explain", *words), says, code=3)


def test_the_largest_tile_named_is_the_largest() -> None:
    """B_c=64 runs where B_c=128 does not, and so does what the refusal of a row tile names."""
    words = ("explain", "mha", "N=8192", "d=256", "Br=256", "--on", "h100-sxm", "--schedule", "flash2")
    assert derive(*words, "Bc=64").code == 0
    assert derive(*words, "Bc=128").code == 3
    rows = ("explain", "mha", "N=8192", "d=128", "Bc=128", "--on", "a100", "--schedule", "flash2")
    found = re.search(r"the largest B_r that fits is (\d+)", derive(*rows, "Br=4096").err)
    assert found
    assert derive(*rows, f"Br={found[1]}").code == 0
    assert derive(*rows, f"Br={int(found[1]) + 64}").code == 3


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("missing/flash2.tex", "cannot be written|No such file"),
        (".", "only FILE.tex"),
        ("flash2.pdf", r"only FILE\.tex"),
        ("flash2", r"only FILE\.tex"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(target: str, says: str, tmp_path: Path) -> None:
    """An impossible ``-o`` is bad input, and leaves nothing behind."""
    refused(derive("explain", "mha", "--schedule", "flash2", "-o", str(tmp_path / target)), says)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_file_s_place_is_named(tmp_path: Path) -> None:
    """A directory called flash2.tex is not overwritten."""
    (tmp_path / "flash2.tex").mkdir()
    refused(
        derive("explain", "mha", "--schedule", "flash2", "-o", str(tmp_path / "flash2.tex"), "--force"), "is a folder"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["flash2.tex"]


def test_no_command_is_answered_with_help() -> None:
    """``derive`` alone shows the commands, as a page and not as one long sentence."""
    answer = derive()
    assert "Traceback" not in answer.err
    assert not answer.err.startswith("error: ")
    assert len((answer.out + answer.err).splitlines()) > 10


@pytest.mark.parametrize(
    "words", [("explain", "mhaa"), ("explain", "mha", "N=1e6"), ("explain", "mha", "--frobnicate")]
)
def test_a_process_refuses_like_a_call(words: tuple[str, ...]) -> None:
    """The same in a process of its own: one line on stderr, exit code 2, no escape sequences."""
    answer = derive_process(*words, TERM="xterm-256color")
    refused(answer, "mhaa|1e6|--frobnicate")
    assert answer == derive(*words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("mla-latent dc=100000", "d_c=100000 is too large to check pair by pair; give at most 256"),
        ("topk topk=4096", "n_t=4096 is too large to check pair by pair; give at most 256"),
        ("mha N=256 d=256 h=8", "the sizes given make 134,217,728 points of one Einsum, too many to visit one by one"),
    ],
)
def test_a_check_refuses_work_that_no_witness_would_finish(words: str, says: str) -> None:
    """Every size of the variant, and what sizes make together, before anything is drawn."""
    found = derive("check", *words.split())
    assert found.code == 2
    assert says in found.err

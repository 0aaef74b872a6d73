# ruff: noqa: E501  (tables)
"""Any list of words at all gets an answer or one sentence, soon, and leaves the world alone."""

from __future__ import annotations

import gc

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import names as variants
from derive.dtype import TYPES
from derive.masks import FORMS, LIST_KEYS, SHARES
from derive.symbols import MEANINGS
from hardware import names as machines
from outputs.cli import main
from rules.derivations import names as schedules
from tests.hostile.junk import JUNK, junk, with_junk
from tests.hostile.world import examples, watched
from tests.outputs.command import Answer, derive

QUICK = (
    "explain",
    "steps",
    "cache",
    "devices",
    "variants",
    "schedules",
    "machines",
    "confront",
    "reload",
    "sweep",
    "code",
)
"""Commands that answer within a second or so: the others take the same words."""
SLOW = ("bound", "laws", "tiles", "paper", "report", "plot", "check")
_KEYS = sorted(
    {m.key for m in MEANINGS.values() if m.key} | {"N", "mask", "dtype", "kv", "scores", "probs", "acc"} | LIST_KEYS
)
_VALUES = (
    "1",
    "2",
    "3",
    "64",
    "128",
    "1000",
    "8K",
    "1M",
    "0.1",
    "1/8",
    "50MiB",
    "?",
    *FORMS,
    *SHARES,
    *TYPES,
    "512,512,1024",
)
_OPTIONS = ("--schedule", "--on", "--convention", "--order", "--sweep", "--l2", "--json", "--steps", "--samples", "--seed", "--where",
            "--budget", "--link", "--scheme", "--kernel", "--data", "--help", "--version", "-h", "--numpy", "--layout")  # fmt: skip
_MEANT = (
    *schedules(),
    *machines(),
    "exact",
    "half",
    "sawtooth",
    "query",
    "effective",
    "2",
    "d <= N",
    "40GiB",
    "50GB/s",
    "ulysses",
)


@st.composite
def arguments(draw: st.DrawFn, commands: tuple[str, ...] = QUICK) -> list[str]:
    """Words of the language in its order, with junk in any place; no file is named that could be written."""
    words = [draw(with_junk(st.sampled_from(commands))), draw(with_junk(st.sampled_from(variants())))]
    for _ in range(draw(st.integers(0, 4))):
        key, value = draw(with_junk(st.sampled_from(_KEYS))), draw(with_junk(st.sampled_from(_VALUES)))
        words.append(draw(st.sampled_from([f"{key}={value}", f"{key}={value}", key, value])))
    for _ in range(draw(st.integers(0, 2))):
        words.append(draw(with_junk(st.sampled_from(_OPTIONS))))
        words += [draw(with_junk(st.sampled_from(_MEANT)))] * draw(st.integers(0, 1))
    if draw(st.booleans()):
        words.insert(draw(st.integers(0, len(words))), draw(junk))
    return words


def answer(*words: str) -> Answer:
    """What ``derive WORDS...`` says, and that it says no more than that."""
    with watched() as deeds:
        found = derive(*words)
    assert deeds == []
    assert found.code in (0, 1, 2, 3)
    assert "Traceback" not in found.err
    if found.code >= 2:
        assert found.out == ""
        assert found.err.startswith("error: ")
        assert found.err.endswith("\n")
        assert found.err[:-1].isprintable()
        assert len(found.err) < 1200
    return found


@settings(max_examples=examples(60))
@given(arguments())
def test_any_words_get_an_answer_or_a_sentence(words: list[str]) -> None:
    """Exit code 0 to 3, no traceback, one printable line when refused, nothing written, within half a minute."""
    answer(*words)


@settings(max_examples=examples(4))
@given(arguments(SLOW))
def test_so_do_commands_that_take_longer(words: list[str]) -> None:
    """The same words before ``bound``, ``laws``, ``tiles``, ``check`` and those that write."""
    answer(*words)


@pytest.mark.parametrize("place", range(6))
def test_each_junk_word_in_each_place(place: int) -> None:
    """As command, variant, key, value, option and its value, one after another."""
    for word in JUNK:
        lists = (
            (word, "mha"), ("explain", word), ("explain", "mha", f"{word}=8"), ("explain", "mha", f"d={word}"),
            ("explain", "mha", "--", word), ("explain", "mha", "--on", word),
        )  # fmt: skip
        words = lists[place]
        if word in ("?", "*") and place == 3:
            continue
        found = answer(*words)
        assert found.code in (0, 2), (words, found)


def test_every_command_is_fuzzed() -> None:
    """A command that is added is added here too; ``completion`` has a test of its own."""
    assert {*QUICK, *SLOW, "completion"} == set(main.list_commands(click.Context(main)))
    assert gc.isenabled()

"""What a message repeats of what a person typed: short, on one line, printable."""

from __future__ import annotations

import pytest

from derive.errors import clipped, nearest, one_line, path_named, repeated


def test_a_long_word_is_cut_to_forty_characters() -> None:
    """Forty stay whole; of forty-one, thirty-seven and three dots."""
    assert clipped("a" * 40) == "a" * 40
    assert clipped("a" * 41) == "a" * 37 + "..."
    assert clipped("abcdef", 5) == "ab..."


def test_what_is_not_printable_is_escaped() -> None:
    """A look-alike too: the message must show that it is none."""
    assert repeated("N") == "N"
    assert repeated("\u039d") == "'\\u039d'"
    assert repeated("\x1b[31m") == "'\\x1b[31m'"


def test_a_path_keeps_both_ends() -> None:
    """160 characters stay; of more, sixty from each end. A letter with an accent is printable, a new line is not."""
    assert path_named("a" * 160) == "a" * 160
    assert path_named("a" * 100 + "b" * 61) == "a" * 60 + "..." + "b" * 60
    assert path_named("früh.csv") == "früh.csv"
    assert path_named("two\nlines") == "'two\\nlines'"


def test_a_sentence_is_one_line() -> None:
    """Space between words is one blank, control characters are written out, the middle of a very long one is left out."""
    assert one_line("one\n two\tthree") == "one two three"
    assert one_line("a\x1bb") == "a\\x1bb"
    long = one_line("a" * 900 + "b" * 900)
    assert long == "a" * 800 + "..." + "b" * 197
    assert one_line("a" * 1000) == "a" * 1000
    assert one_line("a" * 1001) == "a" * 800 + "..." + "a" * 197


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("flash22", "there is no rule 'flash22'; did you mean flash2? (`list` lists them)"),
        ("FLSAH2", "there is no rule 'FLSAH2'; did you mean flash2? (`list` lists them)"),
        ("zzz", "there is no rule 'zzz'; known: flash1, flash2, flsha2x. (`list` lists them)"),
    ],
)
def test_the_nearest_name_is_offered(typed: str, says: str) -> None:
    """Swapped letters first, in any case of letters; where nothing is near, all that is known."""
    assert str(nearest("rule", typed, ["flash1", "flash2", "flsha2x"], "list")) == says
    assert "(`" not in str(nearest("rule", typed, ["flash1", "flash2"]))


def test_of_many_names_none_are_listed() -> None:
    """Twenty names are listed, of twenty-one the command that lists them."""
    many = [f"q{n:02}" for n in range(21)]
    assert str(nearest("rule", "zzz", many, "list")) == "there is no rule 'zzz'; `list` lists them"
    assert "q19" in str(nearest("rule", "zzz", many[:20], "list"))

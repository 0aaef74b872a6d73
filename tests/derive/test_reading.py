"""Files from outside: read up to a bound, and refused in one sentence that says the bound."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from derive.errors import BadValueError
from derive.reading import read_text, why


def test_the_bound_itself_is_read(tmp_path: Path) -> None:
    """One byte more is refused, with the bound in bytes and in MiB."""
    path = tmp_path / "it.csv"
    path.write_text("a" * 2**19)
    assert read_text(path, 2**19, "CSV") == "a" * 2**19
    with pytest.raises(BadValueError, match=rf"is too long: at most {2**19 - 1} \(0\.499999 MiB\) are read"):
        read_text(path, 2**19 - 1, "CSV")
    path.write_text("a" * (3 * 2**20 + 1))
    with pytest.raises(BadValueError, match=rf"at most {3 * 2**20} \(3 MiB\) are read; give less of it"):
        read_text(path, 3 * 2**20, "CSV")


def test_a_byte_order_mark_is_no_text_and_other_codes_are_refused(tmp_path: Path) -> None:
    """UTF-8 alone."""
    path = tmp_path / "it.csv"
    path.write_bytes(b"\xef\xbb\xbfN,bytes")
    assert read_text(path, 100, "CSV") == "N,bytes"
    path.write_bytes("é".encode("latin-1"))
    with pytest.raises(BadValueError, match="is no UTF-8 text; give a file of CSV"):
        read_text(path, 100, "CSV")


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    """The system's words, or Python's where a name cannot be a file's."""
    with pytest.raises(BadValueError, match="cannot be read: No such file or directory"):
        read_text(tmp_path / "none.csv", 100, "CSV")
    with pytest.raises(BadValueError, match="cannot be read: embedded null byte"):
        read_text(Path("a\0b"), 100, "CSV")
    assert why(OSError("no words of the system's")) == "no words of the system's"


def test_a_pipe_that_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    """It is not waited for."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert read_text(path, 100, "CSV") == ""

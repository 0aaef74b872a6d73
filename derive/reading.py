"""Text files that come from outside, read up to a bound and never waited for without end."""

from __future__ import annotations

import os
from pathlib import Path

from derive.errors import BadValueError, path_named


def read_text(path: Path, most: int, kind: str) -> str:
    """The text of *path*, at most *most* bytes of UTF-8; a byte order mark at its start is left out.

    A pipe is read until its writer closes it, and is empty where nobody writes; a device such as ``/dev/zero`` is read no
    further than the bound.

    Args:
        path: a file, a pipe or a device.
        most: bytes.
        kind: what it should be, for the message: ``CSV``.

    Raises:
        BadValueError: it cannot be read, is longer, or is no UTF-8.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            os.set_blocking(file.fileno(), True)
            found = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise BadValueError(f"{path_named(path)} cannot be read: {why(error)}") from None
    if len(found) > most:
        raise BadValueError(
            f"{path_named(path)} is too long: at most {most} ({most / 2**20:g} MiB) are read; give less of it"
        )
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadValueError(f"{path_named(path)} is no UTF-8 text; give a file of {kind}") from None


def why(error: OSError | ValueError) -> str:
    """What the system says against a file; a ValueError is a name with a NUL in it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _at_once(path: str, flags: int) -> int:
    """Opened without waiting for a writer at the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

"""Files written whole or not at all: to a temporary file beside the target, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from derive.errors import BadValueError, path_named
from derive.reading import why


def write(contents: Mapping[Path, str | bytes], *, force: bool) -> None:
    """Write every file, or none; no other file is touched, and a link is replaced instead of followed.

    Args:
        contents: text, or bytes, by path.
        force: whether files that exist are replaced.

    Raises:
        BadValueError: a file exists, or cannot be written; nothing has been changed then.
    """
    partial: dict[Path, Path] = {}
    path = Path()
    try:
        for path in contents:
            _check(path, force=force)
        for path, content in contents.items():
            handle, beside = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
            partial[path] = Path(beside)
            with os.fdopen(handle, "wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
            partial[path].chmod(0o666 & ~_umask())
        for path in contents:
            partial[path].replace(path)
            del partial[path]
    except (OSError, ValueError) as error:
        raise BadValueError(f"{path_named(path)} cannot be written: {why(error)}") from None
    finally:
        for left in partial.values():
            left.unlink(missing_ok=True)


def _check(path: Path, *, force: bool) -> None:
    """No folder is written over, and no file, unless that was asked for."""
    if path.is_dir():
        raise BadValueError(f"{path_named(path)} is a folder; name a file")
    try:
        path.lstat()
    except FileNotFoundError:
        return
    if not force:
        raise BadValueError(f"{path_named(path)} exists; add --force to replace it, or name another file")


def _umask() -> int:
    """What this process withholds from new files."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

"""Files written whole or not at all: to a temporary file beside the target, then renamed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from derive.errors import BadValueError


def write(contents: Mapping[Path, str | bytes], *, force: bool) -> None:
    """Write every file, or none.

    Args:
        contents: text, or bytes, by path.
        force: whether files that exist are replaced.

    Raises:
        BadValueError: a file exists, or cannot be written; nothing has been changed then.
    """
    for path in contents:
        if path.is_dir():
            raise BadValueError(f"{path} is a folder; name a file")
        if path.exists() and not force:
            raise BadValueError(f"{path} exists; add --force to replace it, or name another file")
    partial = {path: path.with_name(path.name + ".part") for path in contents}
    try:
        for path, content in contents.items():
            partial[path].write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        for path in contents:
            partial[path].replace(path)
    except OSError as error:
        for left in partial.values():
            left.unlink(missing_ok=True)
        raise BadValueError(f"{path} cannot be written: {error.strerror}") from None

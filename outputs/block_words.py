"""The list of kept blocks as a person gives it, in words or in a file, and whether it fits the lengths that it is for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from derive.block_list import block_intervals, parsed
from derive.errors import BadValueError, repeated
from derive.met_blocks import Rows

if TYPE_CHECKING:
    from outputs.request import Request

_LARGEST = 2**20
"""Bytes of a file beyond which no list of blocks is read."""


def block_rows(text: str) -> Rows:
    """The list in *text*, its rows apart by ``/``; in ``@FILE``, a row a line.

    Raises:
        BadValueError: it is no list of blocks, or the file cannot be read.
    """
    if not text.startswith("@"):
        return parsed(text.split("/"))
    path = Path(text[1:])
    try:
        if path.stat().st_size > _LARGEST:
            raise BadValueError(
                f"blocks={repeated(text)} is larger than 1 MiB; give a file of one row of blocks a line"
            )
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        raise BadValueError(
            f"blocks={repeated(text)} cannot be read ({why}); give a file of one row of blocks a line"
        ) from None
    if not lines:
        raise BadValueError(
            f"blocks={repeated(text)} is empty; give one row of blocks a line, such as 0,2-4, and - for none"
        )
    return parsed(lines)


def check_blocks(request: Request) -> None:
    """The list is for these lengths: a row for each block of queries, and no block past the keys.

    Raises:
        BadValueError: a length or the block's is not given, or the list is for other ones.
    """
    kept, numbers = request.pattern.kept, request.numbers
    block = numbers.get("C_b")
    queries = request.variant.extents["q"]
    rows = int(queries) if queries.is_Integer else numbers.get("N_q")
    keys = numbers.get("N_k", numbers.get("N_q"))
    if block is None or rows is None or keys is None:
        raise BadValueError("mask=blocks lists the blocks of one length; give N= and block=, such as N=8192 block=128")
    down, across = -(-int(rows) // int(block)), -(-int(keys) // int(block))
    if len(kept) != down:
        raise BadValueError(
            f"blocks lists {len(kept)} rows, and {rows} queries in blocks of {block} have {down}; list each, - for one that "
            "keeps none"
        )
    worst = max((key for row in kept for key in row), default=0)
    if worst >= across:
        raise BadValueError(
            f"blocks names block {worst}, and {keys} keys in blocks of {block} have blocks 0 to {across - 1}; name these"
        )
    block_intervals(kept)

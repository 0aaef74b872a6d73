"""One line on stderr while a person waits: on a terminal alone, after two seconds, and gone when the answer is there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

import click

PATIENCE = 2.0
"""Seconds that nothing is said."""
_EVERY = 1.0


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Says *what* is being done and for how long, until the block ends.

    Yields:
        a function that takes words on how far it has come, such as ``3 of 10``.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    far: list[str] = [""]
    done = Event()
    thread = Thread(target=_tell, args=(what, far, done), daemon=True)
    thread.start()
    try:
        yield lambda words: far.__setitem__(0, words)
    finally:
        done.set()
        thread.join()


def _tell(what: str, far: list[str], done: Event) -> None:
    """Writes the line anew each second, plain characters alone, and wipes it at the end."""
    started, longest, pause = monotonic(), 0, PATIENCE
    columns = shutil.get_terminal_size().columns
    while not done.wait(pause):
        pause = _EVERY
        line = ", ".join(filter(None, (what, far[0], f"{monotonic() - started:.0f} s")))[: columns - 1]
        click.echo(f"\r{line:<{longest}}", err=True, nl=False)
        longest = max(longest, len(line))
    if longest:
        click.echo(f"\r{'':<{longest}}\r", err=True, nl=False)

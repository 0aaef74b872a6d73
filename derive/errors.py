"""Every error raised on purpose, one class per thing a caller may want to catch.

A message says where, what is wrong with the value shown, and what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class DeriveError(Exception):
    """Anything this project refuses; its text is one sentence for a person."""

    exit_code = 2


class IllFormedError(DeriveError):
    """A graph, kernel or schedule that has no meaning."""


class PreconditionError(DeriveError):
    """A rule was asked to rewrite something it is not valid for."""


class UnitError(DeriveError):
    """Two quantities of different units were combined."""


class DomainError(DeriveError):
    """A formula was evaluated where it does not hold."""


class UnboundError(DeriveError):
    """A number was asked of a formula whose symbols have no value yet."""


class UnknownNameError(DeriveError):
    """A variant, schedule, machine, symbol or type that does not exist."""


class BadValueError(DeriveError):
    """A value that its symbol cannot take."""


class MachineDataError(DeriveError):
    """A machine file with a constant that lacks its unit, kind or source."""


class InfeasibleError(DeriveError):
    """A configuration that cannot exist on the machine."""

    exit_code = 3


MOST_NAMES = 20
"""Known names that a message lists; where there are more, it names the command that does."""


def clipped(text: str, longest: int = 40) -> str:
    """*text* as a message repeats it: the start of a long one."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def repeated(text: str) -> str:
    """Typed *text* as a message may repeat it: short, on one line, printable."""
    shown = clipped(text)
    return shown if shown.isascii() and shown.isprintable() else ascii(shown)


def path_named(path: object) -> str:
    """A file's *path* as a message names it: its ends where it is very long, on one line, printable."""
    text = str(path)
    shown = text if len(text) <= 160 else f"{text[:60]}...{text[-60:]}"
    return shown if shown.isprintable() else ascii(shown)


def one_line(sentence: str, longest: int = 1000) -> str:
    """*sentence* on one line, printable, its middle left out where it is very long."""
    shown = sentence if len(sentence) <= longest else f"{sentence[: longest - 200]}...{sentence[-197:]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(shown.split()))


def nearest(kind: str, name: str, known: Iterable[str], command: str = "") -> UnknownNameError:
    """The error for an unknown *name*, with the nearest known one and the way to list them all."""
    known = tuple(known)
    close = get_close_matches(name.lower()[:40], known, n=3, cutoff=0.5)
    close.sort(key=lambda found: sorted(found) != sorted(name.lower()))  # swapped letters are the likeliest slip
    listing = f" (`{command}` lists them)" if command else ""
    if command and not close and len(known) > MOST_NAMES:
        return UnknownNameError(f"there is no {kind} {clipped(name)!a}; `{command}` lists them")
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}."
    return UnknownNameError(f"there is no {kind} {clipped(name)!a}; {hint}{listing}")

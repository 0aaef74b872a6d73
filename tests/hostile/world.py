"""What a block of code may not do while it reads hostile input, watched by an audit hook, and how much memory it may take."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import settings

MEMORY = 4 * 2**30
"""Bytes of address space that one question may take beside what the process has."""
_DEEDS = frozenset({
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pty.spawn", "os.remove", "os.rename", "os.rmdir",
    "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate", "os.kill", "shutil.rmtree",
    "socket.connect", "socket.bind", "builtins.input",
})  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_seen: list[str] | None = None


def _hook(event: str, details: tuple[object, ...]) -> None:
    if _seen is None:
        return
    if event == "open":
        path, _, flags = details
        if isinstance(flags, int) and flags & _WRITES and isinstance(path, str | bytes):  # a number was opened before
            _seen.append(f"open {os.fsdecode(path)}")
    elif event in _DEEDS:
        _seen.append(f"{event} {os.fsdecode(details[0]) if isinstance(details[0], str | bytes) else details[0]}")


sys.addaudithook(_hook)


@contextmanager
def watched() -> Iterator[list[str]]:
    """The deeds of the block: files opened to be written, moved or removed, programs started, connections.

    A block that takes more than ``MEMORY`` ends with MemoryError.
    """
    global _seen
    compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    _seen = found = []
    try:
        yield found
    finally:
        _seen = None
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        sys.dont_write_bytecode = compiled


def examples(few: int) -> int:
    """How many examples a property tries: *few*, or as many times that as ``FUZZ`` says (``make fuzz``)."""
    return few * int(os.environ.get("FUZZ", "1"))


if "FUZZ" in os.environ:
    settings.register_profile("fuzz", settings.get_profile("steady"), derandomize=False)
    settings.load_profile("fuzz")


def harmless(action: Callable[[], object], refusals: tuple[type[Exception], ...]) -> Exception | None:
    """Run *action*; the refusal it ended with. Anything else that is raised, or any deed, fails the test."""
    refusal = None
    with watched() as deeds:
        try:
            action()
        except refusals as error:
            refusal = error
    assert deeds == []
    if refusal is not None:
        sentence = str(refusal)
        assert sentence
        assert len(sentence) < 1500, len(sentence)
        assert sentence.isprintable(), ascii(sentence)
    return refusal

"""A pytest plugin for ``sample.py``: tells coverage which test runs, notes how long each took, and tries few examples."""

from __future__ import annotations

import functools
import gc
import json
import os
import signal
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest
from coverage import Coverage
from sample import Fewer

EXAMPLES = 4
"""Of each property: a line that is reached at all is reached early."""
LIMIT = 60.0
"""Seconds of the processor that a test may take here; one that takes longer is too dear to be tried often."""
_SECONDS: dict[str, float] = {}
_FILE: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The test's name is coverage's context while it runs; what earlier files cached is forgotten, so it is reached anew."""
    measured = Coverage.current()
    assert measured is not None
    file = [item.nodeid.split("::")[0]]
    if file != _FILE:
        _FILE[:] = file
        _forget()
    measured.switch_context(item.nodeid)
    begun = time.process_time()
    _SECONDS.pop(item.nodeid, None)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if item.nodeid in _SECONDS:
            _SECONDS[item.nodeid] = time.process_time() - begun
        measured.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Only tests that pass are kept: one that fails in a copy of the tree would kill every mutant."""
    if report.when == "call" and report.passed:
        _SECONDS[report.nodeid] = 0.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No property tries more than ``EXAMPLES``."""
    Fewer(EXAMPLES).pytest_collection_modifyitems(items)


def pytest_sessionstart() -> None:
    """The limit is a signal."""
    signal.signal(signal.SIGPROF, _too_long)


def pytest_sessionfinish() -> None:
    """Seconds by test that passed."""
    Path(os.environ["REACH_TIMES"]).write_text(json.dumps(_SECONDS), encoding="utf-8")


def _too_long(_: int, __: FrameType | None) -> None:
    raise TimeoutError(f"more than {LIMIT:.0f} s")


def _forget() -> None:
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and thing.__module__.split(".")[0] in ("derive", "rules"):
            thing.cache_clear()

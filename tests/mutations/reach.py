"""A pytest plugin for ``sample.py``: tells coverage which test runs, notes how long each took, and tries few examples."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage
from sample import Fewer

EXAMPLES = 4
"""Of each property: a line that is reached at all is reached early."""
_SECONDS: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The test's name is coverage's context while it runs."""
    measured = Coverage.current()
    assert measured is not None
    measured.switch_context(item.nodeid)
    begun = time.perf_counter()
    try:
        return (yield)
    finally:
        _SECONDS[item.nodeid] = time.perf_counter() - begun
        measured.switch_context("")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No property tries more than ``EXAMPLES``."""
    Fewer(EXAMPLES).pytest_collection_modifyitems(items)


def pytest_sessionfinish() -> None:
    """Seconds by test."""
    Path(os.environ["REACH_TIMES"]).write_text(json.dumps(_SECONDS), encoding="utf-8")

"""The pytest plugin: a ``Disagreement`` is reported as its lines, without the search's traceback; fixtures to compare with.

It imports nothing of the engine until a fixture is used or a comparison fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def derived() -> Callable[..., Any]:
    """``outputs.testing.closed_form``: ``derived("mha", "flash2", "sm", "mask=causal")``."""
    from outputs.testing import closed_form

    return closed_form


@pytest.fixture(scope="session")
def agrees() -> Callable[..., Any]:
    """``outputs.testing.agree``: ``agrees(my_bytes, form, over=shapes("N", "d"))``."""
    from outputs.testing import agree

    return agree


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:  # noqa: ARG001
    """Put the lines of a disagreement in the place of its traceback."""
    outcome = yield
    module = sys.modules.get("outputs.testing.agreement")
    if call.excinfo is None or module is None or not isinstance(call.excinfo.value, module.Disagreement):
        return
    where = next((e for e in reversed(call.excinfo.traceback) if "outputs/testing" not in str(e.path)), None)
    place = f"{str(where.path).rpartition('/')[2]}:{where.lineno + 1}: " if where is not None else ""
    outcome.get_result().longrepr = place + "\n  ".join(call.excinfo.value.lines)

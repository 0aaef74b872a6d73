"""The pytest plugin: a ``Disagreement`` is reported as its lines, without the search's traceback; fixtures to compare with.

It imports nothing of the engine until a fixture is used or a comparison fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_COMPARING = Path(__file__).parent / "testing"
"""Where what compares lies."""


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
    """Put the lines of a disagreement, or the sentence of a refusal, in the place of the traceback of a comparison."""
    outcome = yield
    if call.excinfo is None or "outputs.testing" not in sys.modules:
        return
    path = list(call.excinfo.traceback)
    inside = next((n for n, entry in enumerate(path) if _COMPARING in Path(entry.path).parents), None)
    lines = _lines(call.excinfo.value)
    if not inside or not lines:
        return
    where = path[inside - 1]
    outcome.get_result().longrepr = f"{Path(where.path).name}:{where.lineno + 1}: " + "\n  ".join(lines)


def _lines(error: BaseException) -> list[str]:
    """What a disagreement or a refusal says; empty for an error of the code that is tested."""
    from derive.errors import DeriveError
    from outputs.testing import Disagreement

    if isinstance(error, Disagreement):
        return error.lines
    return [str(error)] if isinstance(error, DeriveError) else []

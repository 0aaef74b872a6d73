"""Every machine answers, or says in one sentence what it lacks."""

from __future__ import annotations

import pytest

from hardware import load, names
from tests.outputs.command import derive


@pytest.mark.parametrize("machine", names())
def test_a_machine_answers_or_says_what_it_lacks(machine: str) -> None:
    """Machines without an L2, a clock or an exponential rate leave out what depends on it; none ends in a traceback."""
    for words in (("N=8192", "d=128"), ("N=200000", "d=64", "h=3", "mask=causal")):
        answer = derive("explain", "mha", *words, "dtype=bf16", "--on", machine)
        assert "Traceback" not in answer.err
        if "bf16" in load(machine).dtypes:
            assert answer.code == 0, answer.err
            assert "SM-side" in answer.out
        else:
            assert (answer.code, answer.out) == (2, "")
            assert "has no bf16 rate" in answer.err

"""Several memories at once: each boundary's class, and one nested choice of tiles for all."""

from __future__ import annotations

from itertools import pairwise

import pytest
import sympy as sp

from derive.attention import variant
from derive.growth import levels
from derive.growth.levels import nested
from derive.schedule import Schedule
from derive.symbols import M_L2, M, M_reg, N_k, N_q, d
from rules.derivations import plan

N = sp.Symbol("N", positive=True, integer=True)
TIED = {N_q: N, N_k: N}


def schedule(name: str) -> Schedule:
    """mha, one head."""
    return plan(name).derive(variant("mha").graph("full", ())).schedule


def test_each_boundary_has_the_class_of_its_capacity() -> None:
    """Registers, shared memory and L2: N d + N^2 d^2/capacity each, with one nested choice of tiles."""
    found = nested(schedule("flash2"), (M_reg, M, M_L2), TIED)
    assert found is not None
    assert found.together
    for level, capacity in zip(found.levels, (M_reg, M, M_L2), strict=True):
        assert level.growth.monomials == (N * d, N**2 * d**2 / capacity)
        assert (d, capacity) in level.growth.needs


def test_tiles_do_not_nest_in_a_memory_that_is_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is alive: with the order of the capacities turned round, no nested tiles reach both classes."""
    monkeypatch.setattr(levels, "pairwise", lambda capacities: [(b, a) for a, b in pairwise(capacities)])
    found = nested(schedule("flash2"), (M_reg, M), TIED)
    assert found is not None
    assert not found.together


def test_a_schedule_of_several_tiled_kernels_has_no_one_nest() -> None:
    """Each of its products has tiles of its own."""
    assert nested(schedule("square"), (M_reg, M), TIED) is None

"""Buffers that stream or stay, and what warp groups read from shared memory, against loops written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.attention import variant
from derive.exact import value
from derive.footprint import tiled_kernels
from derive.replay import walk
from derive.schedule import Schedule
from derive.staging import register_reads, staged_bytes, streams
from derive.symbols import B_r
from rules.derivations import plan
from tests.strategies import masks, shapes

WIDTHS = {"b": 2, "b_kv": 2, "b_s": 2, "b_p": 2, "b_l": 2, "b_acc": 4}


def _schedule(name: str, mask: str = "full") -> Schedule:
    return plan(name).derive(variant("mha").graph(mask)).schedule


@pytest.mark.parametrize(
    ("schedule", "streaming"),
    [
        ("row-resident", [set()]),
        ("flash1", [{"Q"}]),
        ("flash2", [{"K", "V"}]),
        ("square", [{"Qs", "K"}, {"P", "V"}]),
    ],
)
def test_what_streams_follows_from_the_innermost_loop(schedule: str, streaming: list[set[str]]) -> None:
    """K and V under a loop over keys, Q under a loop over queries, both operands under a product's depth."""
    found = _schedule(schedule)
    kernels = tiled_kernels(found)
    assert [{t.name for t in found.inputs_of(k) if streams(k, t)} for k in kernels] == streaming


@given(shape=shapes(), stages=st.integers(1, 4), results=st.booleans())
def test_an_operand_that_streams_has_a_buffer_a_stage(shape: dict[str, int], stages: int, results: bool) -> None:
    """Counted tile by tile: Q once, K and V a stage each, P once when it passes through shared memory."""
    found = _schedule("flash2")
    (kernel,) = tiled_kernels(found)
    r, c, d, e = (shape[name] for name in ("B_r", "B_c", "d", "d_v"))
    elements = sum([r * d, *[c * d] * stages, *[c * e] * stages, *[r * c] * results])
    counted = value(staged_bytes(found, kernel, stages, results=results).amount, {**shape, **WIDTHS})
    assert counted == 2 * elements


@given(shape=shapes(), mask=masks)
def test_warp_groups_read_what_ctas_of_their_rows_would(shape: dict[str, int], mask: str) -> None:
    """Where rows are on the grid, the tile walker at that many rows reads the same."""
    found = _schedule("flash2", mask)
    (kernel,) = tiled_kernels(found)
    walked = walk(found, shape).moves
    reads = sum(2 * walked[name][0] for name in ("Q", "K", "V"))
    assert value(register_reads(found, kernel, B_r).amount, {**shape, **WIDTHS}) == reads


@given(shape=shapes())
def test_a_loop_over_rows_inside_gives_each_warp_group_its_own_keys(shape: dict[str, int]) -> None:
    """With keys outside, every group of rows reads every tile of K and V, and its rows of Q at every key tile."""
    found = _schedule("flash1")
    (kernel,) = tiled_kernels(found)
    reads = 0
    for _ in range(shape["B"] * shape["h"]):
        for key in range(0, shape["N_k"], shape["B_c"]):
            keys = min(shape["B_c"], shape["N_k"] - key)
            for row in range(0, shape["N_q"], shape["B_r"]):
                rows = min(shape["B_r"], shape["N_q"] - row)
                reads += keys * (shape["d"] + shape["d_v"]) + rows * shape["d"]
    assert value(register_reads(found, kernel, B_r).amount, {**shape, **WIDTHS}) == 2 * reads

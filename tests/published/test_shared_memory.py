"""Cycles of one tile on Blackwell's matrix, shared-memory and exponential units, as FlashAttention-4 prints them.

Source: Zadouri et al. 2026, FlashAttention-4, arXiv:2603.05451, sections 3.1.1 and 3.2.1, tables 1 and 3 (one CTA a tile); the
shared-memory rate of Hopper: Shah et al. 2024, FlashAttention-3, arXiv:2407.08608, table 1 (31 TB/s).
"""

from __future__ import annotations

import pytest

from derive.exact import Number, value
from derive.flops import Pipe, executed
from derive.shared_memory import shared_traffic
from hardware import load
from hardware.roofline import rate
from tests.strategies import derivation

B200 = load("b200-sxm")
WIDTHS = {"b": 2, "b_kv": 2, "b_s": 2, "b_p": 2, "b_l": 4, "b_acc": 4, "b_part": 4}


def cycles(variant: str, schedule: str, rows: int, columns: int, width: int) -> tuple[Number, Number, Number]:
    """Of the matrix units, shared memory and the exponential units of one SM, for one more tile of keys and one of queries."""
    made = derivation(variant, schedule, "full").schedule
    shared = shared_traffic(made)
    assert shared is not None
    sizes = {
        "N_q": rows,
        "N_k": columns,
        "d": width,
        "d_v": width,
        "h": 1,
        "B": 1,
        "B_r": rows,
        "B_c": columns,
        "n_s": 1,
    }
    at = {**sizes, **WIDTHS, "m_I": int(B200["mma_rows"].value), "n_I": int(B200["mma_columns"].value)}
    run = executed(made)
    return (
        value(run[Pipe.MMA].amount, at) / 8192,
        value(shared.total.amount, at) / B200["smem_bandwidth"].value,
        value(run[Pipe.SFU].amount, at) / B200["special_function_throughput"].value,
    )


@pytest.mark.parametrize(("rows", "printed"), [(128, (1024, 768, 1024)), (256, (2048, 1536, 2048))])
def test_a_forward_tile_takes_the_printed_cycles(rows: int, printed: tuple[int, int, int]) -> None:
    """Table 1: the exponentials take as long as the products; shared memory three quarters of that."""
    assert cycles("mha", "flash2", rows, 128, 128) == printed


@pytest.mark.parametrize("schedule", ["flash2-backward", "flash2-backward-atomic", "flash2-backward-split"])
def test_a_backward_tile_is_bound_by_shared_memory(schedule: str) -> None:
    """Table 3: 2560 cycles of products, 3328 of shared memory, 30 % more: 13 tiles of 32 KiB cross it.

    Eight are operands, one is dS on its way to dQ = dS K, and dQ in fp32 goes in and out again.
    """
    matmul, shared, exponentials = cycles("mha-backward", schedule, 128, 128, 128)
    assert (matmul, shared, exponentials) == (2560, 3328, 1024)


def test_the_rate_of_shared_memory_on_hopper_is_the_printed_one() -> None:
    """31 TB/s, which is 128 bytes a clock on each of 132 SMs at 1.83 GHz."""
    shared = rate(load("h100-sxm"), "shared", "bf16")
    assert shared is not None
    assert shared.value == 132 * 128 * 1_830_000_000
    assert round(shared.value / 10**12) == 31


def test_a_machine_that_does_not_say_what_an_instruction_makes_has_no_rate() -> None:
    """How often operands are read is not known then: Ampere's warps share fragments as each kernel likes."""
    assert rate(load("a100-sxm-80gb"), "shared", "bf16") is None

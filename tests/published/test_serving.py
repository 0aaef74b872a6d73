"""Reports on decode and serving, each with the right value worked out: those that the forms of this project cover.

The number in a test's name is that of the report in the project's collection; its link stands beside it.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from derive.conversion import converted
from derive.exact import value
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.notation import cascade
from derive.symbols import N_k, b, b_kv, h, symbol
from hardware import load
from rules.derivations import plan
from tests.published.questions import MiB, ask, moved, total

LATENT, ROPE = 512, 64


def latent_decode() -> Graph:
    """One decode step on a latent cache: c is read as keys and as values, r is the rotated part that stays bf16."""
    text = """
        A[h,q,k] = sum[c] Qc[h,q,c] * C[k,c]
        R[h,q,k] = sum[r] Qr[h,q,r] * Kr[k,r]
        S[h,q,k] = A[h,q,k] + R[h,q,k]
        P[h,q,k] = softmax(S[h,q,k])
        O[h,q,c] = sum[k] P[h,q,k] * C[k,c]
    """
    one = symbol("N_q") / symbol("N_q")
    extents = {"h": h, "q": one, "k": N_k, "c": one * LATENT, "r": one * ROPE}
    return cascade(text, extents, outputs=("O",), width=b, widths={"C": b_kv})


def test_case_69_dequantising_the_latent_cache_takes_longer_than_multiplying_it() -> None:
    """https://github.com/deepseek-ai/FlashMLA (docs/20250929-hopper-fp8-sparse-deep-dive.md): 34.0 against 50 cycles a token.

    512 of the 576 elements a token are fp8, read once as keys and as values; 64 heads multiply 576 + 512 of them.
    """
    schedule = plan("flash2").derive(latent_decode()).schedule
    (kernel,) = schedule.kernels
    numbers = {"h": 64, "N_k": 4096, "B_r": 64, "B_c": 64}
    elements = value(converted(schedule, kernel, 2, {"b": 2, "b_kv": 1}).amount, {**numbers, "h": 1})
    assert Fraction(elements, numbers["N_k"]) == LATENT
    machine = load("h100-sxm")
    rate = machine["conversion_throughput_fp8"].value
    assert Fraction(LATENT) / rate == 50
    flop = Fraction(value(flops(schedule.graph)[Pipe.MMA].amount, numbers), numbers["N_k"])
    assert flop == 64 * (576 + 512) * 2
    a_cycle = machine.peak("bf16").value / machine["sm_count"].value / machine["tensor_peak_clock"].value
    assert round(a_cycle) == 4096
    assert float(flop / 4096) == 34.0


def test_case_69_a_bf16_query_with_an_fp8_cache_is_multiplied_at_the_bf16_rate() -> None:
    """Conversion binds where matmul, HBM and L2 would each be faster: invisible to a roofline of two."""
    found = ask("decode N=8192 h=32 hk=8 d=128 kv=fp8", "flash2-packed")
    assert (found.operand, found.narrow, found.bound) == ("bf16", "fp8", "convert")
    assert found.rate("mma").value == load("h100-sxm").peak("bf16").value  # type: ignore[union-attr]
    assert found.exact(found.converted) == 2 * 8 * 8192 * 128
    other = ask("decode N=8192 h=32 hk=8 d=128 kv=fp8 dtype=fp8", "flash2-packed")
    assert (other.operand, other.narrow, other.converted) == ("fp8", "", 0)
    unknown = ask("decode N=8192 h=32 hk=8 d=128 kv=fp8", "flash2-packed", on="a100-sxm-80gb")
    assert unknown.rate("convert") is None
    assert unknown.times["convert"] is None


def test_case_71_a_kernel_a_head_reads_the_cache_once_a_head() -> None:
    """https://github.com/ml-explore/mlx/pull/4077: 32 MiB compulsory, 128 MiB SM-side, 288 MiB with repeat_kv."""
    question = "N=8192 h=32 hk=8 d=128"
    alone, packed, parts = (ask(f"decode {question} splits=4", s) for s in ("flash2", "flash2-packed", "split-kv"))
    assert moved(alone, alone.compulsory, "K", "V") == 32 * MiB
    assert moved(alone, alone.sm, "K", "V") == 128 * MiB
    assert moved(packed, packed.sm, "K", "V") == moved(parts, parts.sm, "K", "V") == 32 * MiB
    copied = ask(f"gqa-repeated Nq=1 Nk=8192 {question[7:]}", "op-by-op")
    assert moved(copied, copied.sm, "K", "V", "K_rep", "V_rep") == 288 * MiB
    assert round(32 * MiB / Fraction(load("h100-sxm")["dram_bandwidth"].value) * 10**6, 1) == 10.0
    narrow = ask(f"decode {question} dtype=fp8", "flash2-packed")
    assert packed.intensity == pytest.approx(4, rel=0.01)
    assert narrow.intensity == pytest.approx(8, rel=0.01)


@pytest.mark.parametrize(("splits", "share"), [(2, Fraction(96, 108)), (3, Fraction(144, 216))])
def test_case_72_parts_fill_waves(splits: int, share: Fraction) -> None:
    """https://github.com/Dao-AILab/flash-attention/issues/609: 48 blocks on 108 SMs, 0.889 with 2 parts, 0.667 with 3."""
    from outputs.splits import splits as priced

    found = priced(ask(f"mha Nq=1 Nk=6144 h=48 d=128 splits={splits}", "split-kv", on="a100-sxm-80gb"))
    assert found is not None
    assert found.shares[splits] == share
    assert found.best == found.cited == 2


def test_partial_results_of_a_decode_step_are_a_small_part_of_its_bytes() -> None:
    """Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html: a few KB a head beside the cache."""
    found = ask("decode N=65536 h=32 hk=8 d=128 splits=16", "split-kv")
    partial = moved(found, found.sm, "m_s", "l_s", "U_O_s")
    assert partial == 2 * 32 * 16 * 130 * 4
    assert Fraction(partial, total(found, found.sm)) < Fraction(1, 400)

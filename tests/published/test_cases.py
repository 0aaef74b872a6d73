"""Public reports of attention counts, each with the right value worked out: every one that these variants cover.

The number in a test's name or id is that of the report in the project's collection; its link stands beside it. Several of
the reported formulas are wrong: the right value stands here.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from derive.exact import value
from derive.flops import Pipe
from derive.mask import causal
from derive.symbols import N_k, N_q
from hardware.roofline import ridge
from outputs.reasons import until_when
from tests.published.questions import KiB, MiB, ask, explain, matmul_flop, moved, total


def pairs(rows: int, columns: int, align: str) -> int:
    """Pairs that a causal mask keeps."""
    return int(value(causal(N_q, N_k, align=align).pairs, {"N_q": rows, "N_k": columns}))


# --- A. Masks and pair counts -----------------------------------------------------------------------------------------


def test_case_1_half_of_dense_is_not_the_causal_count() -> None:
    """https://github.com/Dao-AILab/flash-attention/issues/594: 1 + 1/N at N = 8192; 10 against 8 at N = 4."""
    assert pairs(8192, 8192, "bottom-right") == 33_558_528
    assert pairs(4, 4, "bottom-right") == 10
    exact, half = (matmul_flop("mha N=8192 d=128 mask=causal", convention=c) for c in ("exact", "half"))
    assert Fraction(exact, half) == 1 + Fraction(1, 8192)


def test_case_2_forgetting_the_mask_doubles_the_rate() -> None:
    """https://github.com/modular/modular/issues/5557: dense / causal = 2N/(N+1)."""
    dense, exact = (matmul_flop("mha N=16384 d=128 mask=causal", convention=c) for c in ("dense", "exact"))
    assert Fraction(dense, exact) == Fraction(2 * 16384, 16385)


@pytest.mark.parametrize("schedule", ["naive", "flash2"])
def test_case_3_useful_work_never_exceeds_what_is_run(schedule: str) -> None:
    """https://github.com/pytorch/torchtitan/issues/341: utilisation past 1 comes from counting masked pairs as useful."""
    found = ask("mha N=1000 d=128 mask=causal", schedule)
    assert found.exact(found.useful[Pipe.MMA]) <= found.exact(found.executed[Pipe.MMA])


@pytest.mark.parametrize(
    ("rows", "columns", "top_left", "bottom_right"), [(2, 5, 3, 9), (5, 2, 9, 3), (1, 8192, 1, 8192)]
)
def test_case_4_alignment(rows: int, columns: int, top_left: int, bottom_right: int) -> None:
    """https://github.com/pytorch/pytorch/issues/108108: top-left makes a decode step's FLOPs 8192 times too small."""
    assert pairs(rows, columns, "top-left") == top_left
    assert pairs(rows, columns, "bottom-right") == bottom_right


def test_cases_6_7_9_one_rule_an_alignment_whichever_side_is_longer() -> None:
    """Formulas with a mean length, or with min(Nq, Nk)^2/2, mix alignments: (8192, 1024) keeps 524,800 pairs."""
    assert pairs(8192, 1024, "bottom-right") == 524_800
    assert pairs(8192, 1024, "top-left") == 8192 * 1024 - 1024 * 1023 // 2
    assert matmul_flop("cross Nq=8192 Nk=1024 d=128 mask=causal") == 4 * 128 * 524_800


def test_case_20_the_diagonal_and_the_head_dimension_are_in() -> None:
    """https://github.com/intel/intel-xpu-backend-for-triton/pull/5854: QK^T alone, N = 1024, d = 64."""
    assert matmul_flop("mha N=1024 d=64 mask=causal") == 2 * 67_174_400


@pytest.mark.parametrize(
    ("n", "columns", "tiles", "over"),
    [(8192, 128, 2080, 0.0155), (1000, 128, 36, 0.178), (100, 128, 1, 2.24), (8192, 176, 1542, 0.035)],
)
def test_case_21_whole_tiles_are_run(n: int, columns: int, tiles: int, over: float) -> None:
    """https://github.com/Dao-AILab/flash-attention/issues/591: 128-row tiles under a causal mask."""
    found = ask(f"mha N={n} d=128 mask=causal Br=128 Bc={columns}")
    run = found.exact(found.executed[Pipe.SFU])
    assert run == tiles * 128 * columns
    assert run / found.exact(found.useful[Pipe.SFU]) - 1 == pytest.approx(over, abs=0.005)


# --- B. Heads, dims, tool counters ------------------------------------------------------------------------------------


def test_case_22_flops_count_query_heads() -> None:
    """https://github.com/facebookresearch/xformers/pull/1404: hk does not change the FLOPs."""
    assert matmul_flop("gqa N=256 d=64 h=8 hk=2") == 134_217_728
    assert matmul_flop("gqa N=256 d=64 h=8 hk=8") == 134_217_728


def test_case_23_grouped_queries_dense_and_causal() -> None:
    """https://github.com/pytorch/pytorch/pull/177188: 32/8 heads, N = 8192, d = 128."""
    assert matmul_flop("gqa N=8192 d=128 h=32 hk=8") == 1_099_511_627_776
    assert matmul_flop("gqa N=8192 d=128 h=32 hk=8 mask=causal") == 32 * 17_181_966_336


def test_case_24_a_counter_that_reports_zero() -> None:
    """https://github.com/pytorch/pytorch/issues/195460: (1, 12, 64, 64)."""
    assert matmul_flop("mha N=64 d=64 h=12") == 12_582_912


def test_case_25_the_head_dimension_is_not_hidden_over_heads() -> None:
    """https://github.com/NVIDIA-NeMo/RL/pull/2736: 64 heads of 128 with hidden 4096 do twice the work of 64 heads of 64."""
    assert matmul_flop("mha N=1024 d=128 h=64") == 2 * matmul_flop("mha N=1024 d=64 h=64")


def test_case_26_different_widths_of_k_and_v() -> None:
    """https://github.com/verl-project/verl/pull/4929: h N^2 (d + d_v) by the half convention, 687.2 GFLOP."""
    assert matmul_flop("mha N=4096 d=192 dv=128 h=128 mask=causal", convention="half") == 128 * 4096**2 * 320


def test_case_28_flop_a_context_token() -> None:
    """https://github.com/SemiAnalysisAI/InferenceX-app/pull/849: 4 h d = 32,768 a layer."""
    assert matmul_flop("decode N=1 d=128 h=64 hk=64") == 32_768


def test_case_29_a_multiply_add_is_two_flop() -> None:
    """https://github.com/deepspeedai/DeepSpeed/pull/5584: N = 197, d = 64, 12 heads."""
    assert matmul_flop("mha N=197 d=64 h=12") == 119_221_248


def test_case_31_dense_and_causal_flop_a_token() -> None:
    """https://github.com/karpathy/nanoGPT/issues/456: 12 L H Q T is forward and backward, 3 times forward's 4 H Q T."""
    assert 12 * 3 * matmul_flop("mha N=1024 d=64 h=12") // 1024 == 12 * 12 * 12 * 64 * 1024 == 113_246_208


def test_case_33_softmax_is_a_small_share_of_the_operations() -> None:
    """Elementwise work is about 1 % of the FLOPs at d = 128, and is never added to them: it runs on other pipes."""
    found = ask("mha N=8192 d=128", "naive")
    other = found.exact(found.useful[Pipe.VECTOR] + found.useful[Pipe.SFU])
    assert other / found.exact(found.useful[Pipe.MMA]) == pytest.approx(0.0098, abs=1e-4)


# --- D. Traffic and IO complexity -------------------------------------------------------------------------------------


def test_case_41_m_does_not_enter_the_unfused_count() -> None:
    """https://github.com/Dao-AILab/flash-attention/issues/1260."""
    found = ask("mha N=8192 d=128", "naive")
    assert "M" not in {s.name for s in found.sm.total.amount.free_symbols}


def test_case_42_reads_alone_and_with_the_writes() -> None:
    """https://github.com/Dao-AILab/flash-attention/issues/1705: 143.7 MiB was the read term without O, l, m written."""
    found = ask("mha N=8192 d=128 M=116736", "flash1")
    assert total(found, found.sm) == Fraction("222.25") * MiB
    assert found.exact(found.sm.read.amount) == 4 * MiB + 36 * (4 * MiB + 2 * 16 * KiB)


def test_case_43_rewriting_o_costs_144_mib() -> None:
    """https://github.com/Dao-AILab/flash-attention/issues/335: O read and written 36 times; flash2 writes it once."""
    flash1, flash2 = ask("mha N=8192 d=128 M=116736", "flash1"), ask("mha N=8192 d=128")
    assert moved(flash1, flash1.sm, "O", "U_O") == 144 * MiB
    assert moved(flash2, flash2.sm, "O") == 2 * MiB


def test_case_45_the_row_tile_is_not_clamped_by_the_head_size() -> None:
    """https://github.com/feifeibear/LLMRoofline/issues/2: a tile with all rows reads K and V once."""
    found = ask("mha N=8192 d=128 Br=132000", on=None)
    assert total(found, found.sm) == 8 * MiB


def test_case_46_decode_bytes_with_grouped_queries() -> None:
    """https://github.com/hahnyuan/LLM-Viewer/issues/12: K and V 32 MiB, O 8 KiB; 128 MiB and 1 MiB were reported."""
    found = ask("decode N=8192 d=128 h=32 hk=8", "naive")
    assert moved(found, found.compulsory, "K", "V") == 32 * MiB
    assert moved(found, found.compulsory, "O") == 8192


def test_case_47_a_further_pass_over_the_scores_costs_2_n2_b() -> None:
    """Op by op, the shift, the exponential and the quotient are passes of their own."""
    naive, eager = ask("mha N=8192 d=128", "naive"), ask("mha N=8192 d=128", "op-by-op")
    scores = 2 * 8192**2
    tensors = ("S", "X", "E", "P")
    assert moved(eager, eager.sm, *tensors) - moved(naive, naive.sm, *tensors) == 6 * scores


def test_case_48_traffic_is_not_the_footprint() -> None:
    """Doubling N: SM-side re-reads times 4, on-chip footprint unchanged, HBM traffic times 2 while K and V stay."""
    small, large = ask("mha N=8192 d=128"), ask("mha N=16384 d=128")
    assert moved(large, large.sm, "K", "V") == 4 * moved(small, small.sm, "K", "V")
    assert total(large, large.dram) == 2 * total(small, small.dram)
    assert large.exact(large.footprint) == small.exact(small.footprint)


def test_case_49_m_is_in_elements() -> None:
    """Reading 228 KiB as 233,472 elements halves FlashAttention-1's passes: 18 and 114 MiB or so instead of 222."""
    right, wrong = (ask(f"mha N=8192 d=128 M={m}", "flash1", on=None) for m in (116_736, 233_472))
    assert total(right, right.sm) == Fraction("222.25") * MiB
    assert total(wrong, wrong.sm) / MiB == pytest.approx(113, abs=1)


def test_case_50_when_fused_is_not_less() -> None:
    """K and V re-reads 2 N^2 d/B_r against 4 N^2 score passes: equal at d = 2 B_r; at N = 128 both stay in the L2."""
    fused, naive = ask("mha N=8192 d=256 Br=128 Bc=64"), ask("mha N=8192 d=256", "naive")
    assert moved(fused, fused.sm, "K", "V") == moved(naive, naive.sm, "S", "P")
    wide = ask("mha N=8192 d=512 Br=128 Bc=16", on=None)
    assert moved(wide, wide.sm, "K", "V") == 2 * moved(naive, naive.sm, "S", "P")
    tiny_naive, tiny_flash = ask("mha N=128 d=128", "naive"), ask("mha N=128 d=128")
    assert (total(tiny_naive, tiny_naive.sm), total(tiny_flash, tiny_flash.sm)) == (256 * KiB, 128 * KiB)
    assert tiny_naive.fits


# --- E. Caches --------------------------------------------------------------------------------------------------------


def test_case_57_private_caches_each_hold_a_copy() -> None:
    """https://github.com/ROCm/FlyDSL/pull/919: 8 private L2s read up to 8 times K and V even when each keeps all of it."""
    found = ask("mha N=4096 d=128", on="mi300x")
    assert found.fits
    assert moved(found, found.dram, "K", "V") == 8 * moved(found, found.compulsory, "K", "V")


def test_case_58_sharing_a_tile_cuts_no_dram_bytes_that_the_cache_had_cut() -> None:
    """https://github.com/kekzl/imp/pull/1785: 24 query heads over 4 KV heads, K and V within the L2: HBM sees them once."""
    words = "decode N=4096 d=128 h=24 hk=4"
    apart, packed = ask(words), ask(words, "flash2-packed")
    assert moved(apart, apart.dram, "K", "V") == moved(packed, packed.dram, "K", "V")
    assert moved(apart, apart.sm, "K", "V") == 6 * moved(packed, packed.sm, "K", "V")


@pytest.mark.parametrize(("mib", "n"), [(25, 51_200), (32, 65_536), (37, 75_776), (50, 102_400)])
def test_case_59_one_heads_k_and_v_fill_the_cache(mib: int, n: int) -> None:
    """https://github.com/Dao-AILab/flash-attention, hopper: 512 B a token, budgets of 25 to 50 MiB."""
    limit = explain(f"mha N=8192 d=128 L2={mib}MiB", "flash2").thresholds["flash2"]
    assert limit is not None
    assert limit.number == n


def test_case_60_the_effective_capacity_is_below_the_nominal() -> None:
    """https://github.com/RRZE-HPC/gpu-benches: the H100 keeps full speed to 36 MiB of 50."""
    nominal, effective = (
        explain("mha N=8192 d=128", "flash2", cache=c).thresholds["flash2"] for c in ("nominal", "effective")
    )
    assert nominal is not None
    assert effective is not None
    assert (nominal.number, effective.number) == (102_400, 73_728)


@pytest.mark.parametrize(
    ("on", "words", "says"),
    [
        ("h100-sxm", "d=128", "25 MiB holds a copy of K and V while N <= 51,200"),
        ("a100-sxm-80gb", "d=128", "20 MiB holds a copy of K and V while N <= 40,960"),
        ("h100-sxm", "d=64", "25 MiB holds a copy of K and V while N <= 102,400"),
        ("l4", "d=128", ""),
    ],
)
def test_case_61_each_half_of_the_l2_holds_what_all_sms_read(on: str, words: str, says: str) -> None:
    """https://github.com/RRZE-HPC/gpu-benches, README: 25 MiB / (2 x 128 x 2 B) = 51,200 keys; cited, not modelled."""
    found = until_when(explain(f"mha N=8192 {words}", "naive", "flash2", on=on))
    assert found is not None
    lines = [line for line in found.body if "partition" in str(line)]
    assert len(lines) == bool(says)
    assert all(line.startswith("flash2: ") and says in line and "cited: RRZE-HPC/gpu-benches" in line for line in lines)


# --- F, G and H, as far as these variants go --------------------------------------------------------------------------


def test_case_71_each_kv_byte_read_g_times() -> None:
    """https://github.com/ml-explore/mlx/pull/4077: 32 MiB compulsory, 128 MiB a head at a time, 288 MiB with a copy."""
    words = "N=8192 d=128 h=32 hk=8"
    apart = ask(f"decode {words}")
    assert moved(apart, apart.compulsory, "K", "V") == 32 * MiB
    assert moved(apart, apart.sm, "K", "V") == 128 * MiB
    repeated = ask("gqa-repeated Nq=1 Nk=8192 d=128 h=32 hk=8", "op-by-op")
    assert moved(repeated, repeated.sm, "K", "V", "K_rep", "V_rep") == 288 * MiB
    assert apart.times["dram"] == pytest.approx(10.0e-6, abs=0.05e-6)


@pytest.mark.parametrize(
    ("d", "dtype", "mma", "exp"),
    [(64, "bf16", 17.4, 17.4), (128, "bf16", 34.7, 17.4), (128, "fp8", 17.4, 17.4), (64, "fp8", 8.7, 17.4)],
)
def test_case_78_the_exponential_unit(d: int, dtype: str, mma: float, exp: float) -> None:
    """https://github.com/Dao-AILab/flash-attention/issues/1160: 16 exp a clock on 132 SMs at 1.83 GHz, N = 8192."""
    found = ask(f"mha N=8192 d={d} dtype={dtype}")
    assert (found.times["mma"] or 0) * 1e6 == pytest.approx(mma, abs=0.06)
    assert (found.times["exp"] or 0) * 1e6 == pytest.approx(exp, abs=0.06)


def test_case_86_dense_peaks_and_their_ridges() -> None:
    """1979 TFLOP/s of bf16 needs 2:4 sparsity; the ridge is 295, not 591, which is right for dense fp8."""
    machine = ask("mha N=8192 d=128").machine
    assert machine is not None
    assert float(ridge(machine, "bf16")) == pytest.approx(295.3, abs=0.1)
    assert float(ridge(machine, "fp8")) == pytest.approx(591, abs=1)

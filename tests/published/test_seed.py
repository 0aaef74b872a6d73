"""The question this project answers first: one head, N = 8192, d = 128, bf16, naive against FlashAttention-2 on an H100.

Source: an interview question and its worked answer, "Count the HBM bytes FlashAttention reads and writes for one head at
N = 8K and d = 128, and compare it with naive attention". Every number is derived here, from the graph and the rules.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from derive.exact import value
from derive.flops import Pipe
from outputs.explanation import Explanation
from tests.published.questions import MiB, ask, explain, matmul_flop, moved, total

SEED = "mha N=8192 d=128"


def test_one_tensor_is_2_mib_and_the_floor_8_mib() -> None:
    """Q, K, V and O, read or written once."""
    found = ask(SEED)
    assert moved(found, found.compulsory, "Q") == 2 * MiB
    assert total(found, found.compulsory) == 8 * MiB


@pytest.mark.parametrize(
    ("types", "mib", "scores"),
    [("", 520, 512), ("scores=fp32", 1032, 1024), ("scores=fp32 probs=bf16", 776, 768)],
)
def test_naive_moves_the_scores_four_times(types: str, mib: int, scores: int) -> None:
    """bf16 scores, fp32 S and P, and fp32 S with bf16 P."""
    found = ask(f"{SEED} {types}", "naive")
    assert total(found, found.dram) == mib * MiB
    assert total(found, found.sm) == mib * MiB
    assert moved(found, found.dram, "S", "P") == scores * MiB


def test_naive_takes_163_microseconds_at_the_peak_bandwidth() -> None:
    """520 MiB are binary, 3.35 TB/s are decimal; 155.2 or 148.0 us would mix them."""
    assert ask(SEED, "naive").times["dram"] == pytest.approx(162.8e-6, abs=0.05e-6)


@pytest.mark.parametrize(("rows", "mib"), [(64, 516), (128, 260), (176, 192), (192, 176), (256, 132)])
def test_flash2_reads_k_and_v_once_a_row_tile(rows: int, mib: int) -> None:
    """(ceil(N/B_r) + 1) * 4 MiB through the cache; ragged tiles included."""
    found = ask(f"{SEED} Br={rows}")
    assert total(found, found.sm) == mib * MiB
    assert moved(found, found.sm, "K", "V") == (mib - 4) * MiB


def test_flash1_makes_36_passes_with_the_published_tiles() -> None:
    """Algorithm 1 at M = 116,736 elements: B_c = 228, B_r = 128, 222.25 MiB with O, l and m read and written each pass."""
    found = ask(f"{SEED} M=116736", "flash1")
    assert (found.values["B_c"], found.values["B_r"]) == (228, 128)
    assert found.exact(found.derivation.schedule.kernels[0].loop_of("k").trips) == 36  # type: ignore[union-attr]
    assert total(found, found.sm) == Fraction("222.25") * MiB


def test_flash1_takes_its_m_from_the_machine() -> None:
    """228 KiB of shared memory are 116,736 bf16 elements."""
    assert ask(SEED, "flash1").values["M"] == 116_736


def test_flash2_moves_the_floor_when_k_and_v_stay_in_the_l2() -> None:
    """8 MiB at HBM, 97.7 % of the SMs' requests hit."""
    found = ask(SEED)
    assert total(found, found.dram) == 8 * MiB
    assert found.fits
    assert found.hit_rate == pytest.approx(1 - 6 / 260)


def test_work_and_intensity() -> None:
    """34.4 GFLOP over 8 MiB: 4096 FLOP/B, past a ridge of 295; N^2 exponentials."""
    found = ask(SEED)
    assert found.exact(found.useful[Pipe.MMA]) == 34_359_738_368
    assert found.exact(found.executed[Pipe.MMA]) == 34_359_738_368
    assert found.exact(found.useful[Pipe.SFU]) == 67_108_864
    assert found.intensity == 4096
    assert float(found.ridge or 0) == pytest.approx(295.3, abs=0.05)


def test_flash2_is_compute_bound_at_35_microseconds() -> None:
    """Matrix pipe 34.7 us, exponentials half of that, HBM 2.5 us."""
    found = ask(SEED)
    assert found.bound == "mma"
    assert found.seconds == pytest.approx(34.73e-6, abs=0.01e-6)
    assert found.times["exp"] == pytest.approx(17.36e-6, abs=0.01e-6)
    assert found.times["dram"] == pytest.approx(2.504e-6, abs=0.001e-6)


def test_naive_moves_65_times_the_bytes() -> None:
    """520 / 8."""
    naive, flash2 = ask(SEED, "naive"), ask(SEED)
    assert total(naive, naive.dram) == 65 * total(flash2, flash2.dram)


def test_causal_counts() -> None:
    """Exact and half are two numbers; flash2 runs 2080 tiles, naive all of them."""
    assert matmul_flop(f"{SEED} mask=causal") == 17_181_966_336
    assert matmul_flop(f"{SEED} mask=causal", convention="half") == 17_179_869_184
    assert matmul_flop(f"{SEED} mask=causal", convention="dense") == 34_359_738_368
    assert matmul_flop(f"{SEED} mask=causal", convention="tiled") == 2080 * 128 * 128 * 4 * 128
    naive = ask(f"{SEED} mask=causal", "naive")
    assert total(naive, naive.dram) == 520 * MiB
    assert naive.exact(naive.executed[Pipe.MMA]) == 34_359_738_368


def test_causal_reads_266240_key_rows() -> None:
    """SM-side K under a causal mask, 128x128 tiles: the keys of the tiles that each row tile meets."""
    found = ask(f"{SEED} mask=causal")
    assert found.exact(found.sm.by_tensor["K"].read) == 266_240 * 128 * 2


def test_decode_is_bandwidth_bound() -> None:
    """One query, 8192 keys: K and V once, one FLOP a byte; G times that for a group of G query heads."""
    found = ask("decode N=8192 d=128")
    assert moved(found, found.dram, "K", "V") == 4 * MiB
    assert found.exact(found.useful[Pipe.MMA]) == 4_194_304
    assert float(found.intensity or 0) == pytest.approx(1, abs=1e-3)
    assert found.bound == "dram"
    grouped = ask("decode N=8192 d=128 h=8 hk=1", "flash2-packed")
    assert float(grouped.intensity or 0) == pytest.approx(8, abs=0.02)


def seed_explained() -> Explanation:
    """Naive and flash2 side by side."""
    return explain(SEED, "naive", "flash2")


def test_residency_ends_at_102400_keys() -> None:
    """One head's K and V reach 50 MiB at N = 102,400, as a formula and as a number."""
    limit = seed_explained().thresholds["flash2"]
    assert limit is not None
    assert limit.number == 102_400
    assert value(limit.formula, {"C_L2": 50 * MiB, "d": 128, "b": 2, "b_kv": 2}) == 102_400


def test_past_it_each_wave_reads_k_and_v_again() -> None:
    """N = 131,072: 64 MiB of K and V, 8 waves of 132 CTAs, 512 MiB from HBM against 64 GiB SM-side."""
    found = ask("mha N=131072 d=128")
    assert found.sharing is not None
    _, shared = found.sharing
    assert found.exact(shared.slice_bytes) == 64 * MiB
    assert found.exact(shared.waves) == 8
    assert found.fits is False
    assert moved(found, found.dram, "K", "V") == 512 * MiB
    assert moved(found, found.sm, "K", "V") == 64 * 1024 * MiB


def test_a_sawtooth_sweep_keeps_what_the_last_wave_left() -> None:
    """W F - (W - 1) C_L2 = 8 * 64 - 7 * 50 MiB."""
    found = ask("mha N=131072 d=128", sawtooth=True)
    assert moved(found, found.dram, "K", "V") == (8 * 64 - 7 * 50) * MiB


def test_the_constant_not_d2_over_m_is_what_is_large() -> None:
    """d^2/M is 0.14 and N^2 d^2/M is 18 MiB, 14 times under 260; a Q tile that fills M makes 9 passes, 40 MiB."""
    answer = seed_explained()
    flash2 = answer.accounts[1]
    fast, d, n = flash2.values["M"], 128, 8192
    assert Fraction(d * d, int(fast)) == pytest.approx(0.140, abs=5e-4)
    assert 260 * MiB / (2 * n * n * d * d / fast) == pytest.approx(14.5, abs=0.05)
    filling = answer.with_row_tile("flash2", int(fast) // d)
    assert int(fast) // d == 912
    assert total(filling, filling.sm) == 40 * MiB


def test_row_resident_fusion_needs_the_sequence_on_chip() -> None:
    """Its footprint grows with N_k; flash2's does not."""
    row_resident, flash2 = ask("mha N=400 d=128", "row-resident"), ask(SEED)
    names = {s.name for s in row_resident.footprint.free_symbols}  # type: ignore[union-attr]
    assert "N_k" in names
    assert "N_k" not in {s.name for s in flash2.footprint.free_symbols}  # type: ignore[union-attr]


def test_a_length_of_10_to_the_18_is_answered_exactly() -> None:
    """Plain integers by hand: T_r = N/128 row tiles, K and V read T_r times, Q and O once."""
    n = 10**18
    found = ask(f"mha N={n} d=128")
    assert total(found, found.sm) == 2 * n * 128 * 2 * (1 + n // 128)
    causal = ask(f"mha N={n} d=128 mask=causal")
    assert causal.exact(causal.useful[Pipe.MMA]) == 2 * 128 * n * (n + 1)


def test_small_naive_attention_keeps_its_scores_in_the_l2() -> None:
    """N = 2048: S and P are read back from the cache; each is still written back to HBM once."""
    found = ask("mha N=2048 d=128", "naive")
    assert moved(found, found.sm, "S", "P") == 32 * MiB
    assert moved(found, found.dram, "S", "P") == 16 * MiB
    assert found.exact(found.dram.by_tensor["S"].read) == 0

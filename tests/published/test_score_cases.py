"""Public reports and published counts of scores, latents and padding, each with its link or its paper.

A case's number is that of the report in the project's collection.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from derive.flops import Pipe
from tests.published.questions import ask, matmul_flop, moved

MIB = 2**20


def test_case_7_one_alignment_and_its_diagonal() -> None:
    """https://github.com/ROCm/triton/pull/742: N_q N_k - min^2/2 gives 8, 8 and 7,864,320 and is neither alignment."""
    wanted = {(5, 2): (9, 3), (2, 5): (3, 9), (8192, 1024): (7_864_832, 524_800)}
    for (rows, keys), (top_left, bottom_right) in wanted.items():
        for mask, pairs in (("causal-tl", top_left), ("causal", bottom_right)):
            assert matmul_flop(f"cross Nq={rows} Nk={keys} d=1 mask={mask}") == 4 * pairs


def test_case_30_attention_that_hooks_do_not_see() -> None:
    """https://github.com/deepspeedai/DeepSpeed/issues/4723: a block's 12 D^2 weights a token hide 2 N D: 1 + N/(6 D)."""
    n, width = 8192, 192
    attention = Fraction(matmul_flop(f"mha N={n} d=64 h={width // 64}"), 2 * n)  # multiply-adds a token
    assert attention == 2 * n * width
    assert 1 + attention / (12 * width**2) == pytest.approx(8.11, abs=0.005)


@pytest.mark.parametrize(("dtype", "size"), [("int8", 64 * MIB), ("bf16", 128 * MIB)])
def test_case_52_a_mask_in_memory(dtype: str, size: int) -> None:
    """https://github.com/ml-explore/mlx/pull/3552: 64 MiB at N = 8192 and a byte a pair; as a formula nothing."""
    found = ask(f"bias N=8192 d=128 dtype={dtype}")
    assert moved(found, found.compulsory, "A") == size
    formula = ask(f"mha N=8192 d=128 dtype={dtype} mask=window W=512")
    assert {name for name, move in formula.compulsory.by_tensor.items() if move.read != 0} == {"Q", "K", "V"}


def test_case_53_dropout_stores_its_mask_only_where_it_is_not_fused() -> None:
    """https://github.com/intel/torch-xpu-ops/pull/3766: 64 MiB a head at 8192, a byte a pair; fused, a seed."""
    naive, flash = (ask("dropout N=8192 d=128", name) for name in ("naive", "flash2"))
    assert naive.exact(naive.sm.by_tensor["D"].write) == naive.exact(naive.sm.by_tensor["D"].read) == 64 * MIB
    assert "D" not in flash.sm.by_tensor
    assert flash.exact(flash.sm.total.amount) == ask("mha N=8192 d=128").exact(ask("mha N=8192 d=128").sm.total.amount)


def test_case_67_v_is_a_view_of_the_latent() -> None:
    """https://github.com/tenstorrent/tt-metal/issues/55764: 576 elements a token, not 1088."""
    words = "Nq=1 Nk=4096 h=128"
    latent = ask(f"mla-latent {words} dc=512 dr=64")
    apart = ask(f"mqa {words} d=576 dv=512")
    tokens = moved(latent, latent.compulsory, "C", "K_rope") // 2
    assert tokens == 576 * 4096
    assert moved(apart, apart.compulsory, "K", "V") // 2 == 1088 * 4096
    assert latent.exact(latent.useful[Pipe.MMA]) == apart.exact(apart.useful[Pipe.MMA])


def test_flashmla_s_counts() -> None:
    """FlashMLA's documentation: 2 h s_q s_k (d_k + d_v) FLOP and 2 (h s_q d_k + s_k d_k + h s_q d_v) bytes of bf16."""
    h, s_q, s_k, d_k, d_v = 128, 2, 4096, 576, 512
    found = ask(f"mla-latent Nq={s_q} Nk={s_k} h={h} dc=512 dr=64")
    assert found.exact(found.useful[Pipe.MMA]) == 2 * h * s_q * s_k * (d_k + d_v)
    assert found.exact(found.compulsory.total.amount) == 2 * (h * s_q * d_k + s_k * d_k + h * s_q * d_v)


def test_deepseek_v2_table_1_elements_a_token() -> None:
    """arXiv:2405.04434, table 1: MLA caches d_c + d_r elements, MHA 2 h d, GQA 2 h_k d, MQA 2 d a token and layer."""

    def cached(words: str, *names: str) -> int:
        found = ask(f"{words} Nq=1 Nk=1024")
        return moved(found, found.compulsory, *names) // 2 // 1024

    assert cached("mla-latent h=16 dc=512 dr=64", "C", "K_rope") == 576
    assert cached("mla h=16 d=128 dc=512 dr=64", "C", "K_rope") == 576
    assert cached("mha h=16 d=128", "K", "V") == 2 * 16 * 128
    assert cached("gqa h=16 hk=4 d=128", "K", "V") == 2 * 4 * 128
    assert cached("mqa h=16 d=128", "K", "V") == 2 * 128


@pytest.mark.parametrize(
    ("words", "names", "intensity"),
    [
        ("mha h=16 d=128", ("K", "V"), 1),
        ("gqa h=16 hk=4 d=128", ("K", "V"), 4),
        ("mqa h=16 d=128", ("K", "V"), 16),
        ("grouped-latent h=16 hk=4 dc=512 dr=1", ("C", "K_rope"), 8),
        ("mla-latent h=16 dc=512 dr=1", ("C", "K_rope"), 32),
        ("grouped-tied h=16 hk=4 d=128", ("V1", "V2", "K_rope"), 8),
    ],
)
def test_arithmetic_intensity_of_a_long_decode_step(words: str, names: tuple[str, ...], intensity: int) -> None:
    """arXiv:2505.21487, table 1, as L grows: FLOP a byte of the cache, 2 g / m, with m = 1 where K is V and 2 where not.

    The rotary key is one more row of the cache, which the table leaves out: within a quarter for GTA's, of d of 3 d channels.
    """
    found = ask(f"{words} Nq=1 Nk=65536")
    cache = moved(found, found.compulsory, *names)
    assert found.exact(found.useful[Pipe.MMA]) / cache == pytest.approx(
        intensity, rel=0.26 if "tied" in words else 0.003
    )


@pytest.mark.parametrize(
    ("d", "pad", "ratio"), [(80, 32, 1.2), (80, 128, 1.6), (96, 128, 1.33), (192, 256, 1.33), (72, 16, 1.11)]
)
def test_case_84_padded_widths_run_and_do_not_count(d: int, pad: int, ratio: float) -> None:
    """https://github.com/pytorch/pytorch/issues/108183: work grows by the padded width over d; useful work does not."""
    found = ask(f"mha N=1024 d={d} pad={pad}")
    plain = ask(f"mha N=1024 d={d}")
    assert found.exact(found.useful[Pipe.MMA]) == plain.exact(plain.useful[Pipe.MMA]) == 4 * 1024**2 * d
    run = Fraction(found.exact(found.executed[Pipe.MMA]), plain.exact(plain.executed[Pipe.MMA]))
    assert run == pytest.approx(ratio, abs=0.005)


def test_case_84_padded_keys_are_whole_tiles() -> None:
    """77 keys in a tile of 256 are 3.32 times the work."""
    found = ask("cross Nq=1024 Nk=77 d=64 Bc=256")
    assert found.exact(found.executed[Pipe.MMA]) / found.exact(found.useful[Pipe.MMA]) == pytest.approx(3.32, abs=0.01)


def test_each_unfused_pass_over_the_scores_costs_two_n_squared() -> None:
    """Scale, cap and mask passes of a framework: 2 N^2 b each, and nothing where they are fused."""
    n = 4096
    plain, capped = (ask(f"{name} N={n} d=64", "naive") for name in ("mha", "softcap"))
    assert capped.exact(capped.sm.total.amount) - plain.exact(plain.sm.total.amount) == 3 * 2 * n**2 * 2
    fused, also = (ask(f"{name} N={n} d=64") for name in ("mha", "softcap"))
    assert fused.exact(fused.sm.total.amount) == also.exact(also.sm.total.amount)


def test_where_absorbing_costs_more_work_than_it_saves() -> None:
    """arXiv:2405.04434: with many keys, N_q (2 d_c - d - d_v) = d_c (d + d_v), about 171 queries at DeepSeek's widths."""

    def flop(queries: int, schedule: str) -> int:
        found = ask(f"mla Nq={queries} Nk={2**24} h=1 d=128 dc=512 dr=64", schedule)
        return int(found.exact(found.useful[Pipe.MMA]))

    assert flop(170, "absorbed") < flop(170, "flash2")
    assert flop(171, "absorbed") > flop(171, "flash2")
    assert Fraction(512 * 256, 2 * 512 - 256) == pytest.approx(170.67, abs=0.01)

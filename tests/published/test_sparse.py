"""Sparse attention against published counts: FlashMLA's cache, DeepSeek's sizes, the memory accesses of NSA."""

from fractions import Fraction

import pytest

from derive.dtype import dtype
from tests.published.questions import ask, matmul_flop, moved

DSA = "dsa h=128 dc=512 dr=64 hi=64 di=128 topk=2048"
"""huggingface.co/deepseek-ai/DeepSeek-V3.2-Exp, config.json: index_n_heads, index_head_dim, index_topk."""
FP8 = "kv=fp8-g128 indexer=fp8-g128"


def test_a_selected_token_is_656_bytes() -> None:
    """FlashMLA, docs/20250929-hopper-fp8-sparse-deep-dive.md: 512 fp8 + 4 fp32 scales + 64 bf16 a token.

    In a decode step all heads share the rows: 2048 of them cross once for each tile of 64 heads.
    """
    found = ask(f"{DSA} Nq=1 Nk=128K {FP8}", "per-query", on=None)
    assert 512 * dtype("fp8-g128").width + 64 * 2 == 656
    assert moved(found, found.compulsory, "C", "K_rope") == 2048 * 656
    tiled = ask(f"{DSA} Nq=1 Nk=128K {FP8} Br=64 Bc=64", "per-query", on=None)
    assert moved(tiled, tiled.sm, "C", "K_rope") == 2 * 2048 * 656


def test_the_indexer_reads_all_keys_at_132_bytes() -> None:
    """Its keys are 128 fp8 and one scale; at 128K they are nine tenths of what a decode step reads of the cache."""
    found = ask(f"{DSA} Nq=1 Nk=128K {FP8}", "per-query", on=None)
    index, core = moved(found, found.compulsory, "K_I"), moved(found, found.compulsory, "C", "K_rope")
    assert index == 128 * 1024 * 132
    assert Fraction(index, index + core) > Fraction(9, 10)


def test_the_work_of_a_decode_step_is_the_indexer_s_and_the_core_s() -> None:
    """arXiv:2512.02556, section 2.1: O(N topk) in the core, still O(N^2) in the indexer, with far fewer channels."""
    found = matmul_flop(f"{DSA} Nq=1 Nk=128K", "per-query")
    indexer, core = 2 * 64 * 128 * 128 * 1024, 2 * 128 * 2048 * (576 + 512)
    assert found == indexer + core
    dense = 2 * 128 * 128 * 1024 * (576 + 512)
    assert pytest.approx(dense / found, rel=0.01) == 13.42


@pytest.mark.parametrize(("length", "tokens"), [(8192, 2048), (16384, 2560), (32768, 3584), (65536, 5632)])
def test_tokens_that_a_step_of_nsa_reads(length: int, tokens: int) -> None:
    """arXiv:2502.11089, table 4 (memory access in tokens): a compressed key a stride of 16, 16 blocks of 64, 512 neighbours.

    Each branch is a question of its own: decode over the compressed keys, topk over the selected, decode in a window. 4 groups
    of 16 heads, d_k = 192 and d_v = 128 as in section 4.1; a group's heads share what they read, so it is read once.
    """
    sizes = "h=64 hk=4 d=192 dv=128"
    branches = (
        (f"decode {sizes} Nk={length // 16}", "flash2-packed"),
        (f"topk {sizes} Nq=1 Nk={length} topk={16 * 64} Br=16 Bc=64", "per-query"),
        (f"decode {sizes} Nk={length} mask=window W=512", "flash2-packed"),
    )
    accounts = [ask(words, schedule, on=None) for words, schedule in branches]
    per_token = 4 * (192 + 128) * 2
    assert sum(moved(a, a.compulsory, "K", "V") for a in accounts) == tokens * per_token
    assert moved(accounts[1], accounts[1].sm, "K", "V") == 16 * 64 * per_token


@pytest.mark.parametrize(("length", "tokens"), [(8192, 2048), (16384, 2560), (32768, 3584), (65536, 5632)])
def test_one_graph_of_nsa_reads_what_its_branches_do(length: int, tokens: int) -> None:
    """The same table from the three branches in one graph; block scores read compressed keys again."""
    sizes = f"h=64 hk=4 d=192 dv=128 Nk={length} lc=32 stride=16 ls=64 nb=16 W=512"
    found = ask(f"nsa {sizes} Br=16 Bc=64", "per-query", on=None)
    branches = [(f"K_{name}", f"V_{name}") for name in ("cmp", "slc", "win")]
    keys, values = 4 * 192 * 2, 4 * 128 * 2
    assert sum(moved(found, found.compulsory, *names) for names in branches) == tokens * (keys + values)
    read = [moved(found, found.sm, *names) for names in branches]
    once = [count * (keys + values) for count in (length // 16, 16 * 64, 512)]
    assert read == [once[0] + length // 16 * keys, *once[1:]]


def test_the_work_of_nsa_is_that_of_its_branches() -> None:
    """The products of each branch as a question of its own, and once more the compressed scores."""
    sizes = "h=64 hk=4 d=192 dv=128"
    apart = [
        matmul_flop(f"decode {sizes} Nk=512", "flash2-packed"),
        matmul_flop(f"topk {sizes} Nq=1 Nk=8192 topk={16 * 64}", "per-query"),
        matmul_flop(f"decode {sizes} Nk=8192 mask=window W=512", "flash2-packed"),
    ]
    found = matmul_flop(f"nsa {sizes} Nk=8192 lc=32 stride=16 ls=64 nb=16 W=512", "per-query")
    assert found == sum(apart) + 2 * 64 * 512 * 192

"""Reports on decode and serving, each with the right value worked out: those that the forms of this project cover.

The number in a test's name is that of the report in the project's collection; its link stands beside it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from sympy import Integer

from derive.attention import variant
from derive.conversion import converted
from derive.evaluate import evaluate, random_inputs
from derive.exact import value
from derive.execute import execute
from derive.flops import Pipe, flops
from derive.graph import Graph
from derive.notation import cascade
from derive.symbols import N_k, N_q, b, b_kv, h
from derive.traffic import compulsory
from hardware import load
from hardware.roofline import ridge
from outputs.account import Account
from outputs.splits import splits as priced
from rules.derivations import plan
from tests.published.questions import MiB, ask, matmul_flop, moved, total
from tests.rules.meaning import counted, walked
from tests.strategies import shapes

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
    extents = {"h": h, "q": N_q, "k": N_k, "c": Integer(LATENT), "r": Integer(ROPE)}
    return cascade(text, extents, outputs=("O",), width=b, widths={"C": b_kv})


def test_case_69_dequantising_the_latent_cache_takes_longer_than_multiplying_it() -> None:
    """https://github.com/deepseek-ai/FlashMLA (docs/20250929-hopper-fp8-sparse-deep-dive.md): 34.0 against 50 cycles a token.

    512 of the 576 elements a token are fp8, read once as keys and as values; 64 heads multiply 576 + 512 of them.
    """
    schedule = plan("flash2").derive(latent_decode()).schedule
    (kernel,) = schedule.kernels
    numbers = {"h": 64, "N_q": 1, "N_k": 4096, "B_r": 64, "B_c": 64}
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


@pytest.mark.parametrize(
    ("heads", "queries", "keys", "intensity"), [(128, 1, None, 241.8), (128, 1, 4096, 228.3), (128, 2, 4096, 432.5)]
)
def test_case_65_a_latent_cache_at_128_heads_is_memory_bound_with_one_query(
    heads: int, queries: int, keys: int | None, intensity: float
) -> None:
    """https://github.com/deepseek-ai/FlashMLA (docs/20250422-new-kernel-deep-dive.md): the rounded 2 h s_q says otherwise.

    The exact ratio is h s_q (576 + 512)/576 FLOP a byte: compute-bound from 156.3 heads and queries at 989 TFLOP/s.
    """
    graph = latent_decode()
    numbers = {"h": heads, "N_q": queries, "N_k": keys or 10**9}
    widths = dict.fromkeys(graph.tensors, b)
    moved_bytes = value(compulsory(graph).in_bytes(widths).total.amount, {**numbers, "b": 2})
    found = Fraction(value(flops(plan("flash2").derive(graph).schedule.graph)[Pipe.MMA].amount, numbers)) / moved_bytes
    ridge_ = ridge(load("h100-sxm"), "bf16")
    assert float(found) == pytest.approx(intensity, abs=0.06)
    assert (found > ridge_) == (queries > 1)
    assert float(ridge_ / Fraction(576 + 512, 576)) == pytest.approx(156.3, abs=0.1)


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


# --- a shared prefix --------------------------------------------------------------------------------------------------


def shared(sequences: int, schedule: str, more: str = "") -> Account:
    """Llama-2 7B's heads, one query a sequence, a prefix of 32,768 keys and 256 of each sequence's own."""
    question = f"cascade Nq=1 Nk=256 prefix=32K B={sequences} h=32 hk=32 d=128 {more}"
    return ask(question, schedule)


@pytest.mark.parametrize("sequences", [1, 2, 128, 256])
def test_a_cascade_reads_the_prefix_once_where_sequences_read_it_each(sequences: int) -> None:
    """flashinfer.ai/2024/02/02/cascade-inference.html: one graph, two schedules; own keys, Q and states move alike."""
    apart, together = (shared(sequences, s) for s in ("per-sequence", "cascade"))
    prefix = 32 * 32768 * 2 * 128 * 2
    tiles = -(-sequences // 128)
    assert moved(apart, apart.sm, "Kp", "Vp") == sequences * prefix
    assert moved(together, together.sm, "Kp", "Vp") == tiles * prefix
    assert total(apart, apart.sm) - total(together, together.sm) == (sequences - tiles) * prefix
    assert total(apart, apart.compulsory) == total(together, together.compulsory)
    assert moved(together, together.compulsory, "Kp", "Vp") == prefix


def test_the_published_gain_lies_below_what_the_bytes_allow() -> None:
    """Up to 31x over vLLM's PagedAttention at 32,768 shared keys, B >= 128, suffixes up to 256 (H100, 7B); bytes allow 64x.

    At 256 keys shared by two sequences there is little to gain.
    """
    apart, together = (shared(128, s) for s in ("per-sequence", "cascade"))
    assert 31 < Fraction(total(apart, apart.sm), total(together, together.sm)) < 65
    few = [ask("cascade Nq=1 Nk=32K prefix=256 B=2 h=32 hk=32 d=128", s) for s in ("per-sequence", "cascade")]
    assert Fraction(total(few[0], few[0].sm), total(few[1], few[1].sm)) < Fraction(101, 100)


@settings(max_examples=12)
@given(numbers=shapes())
@pytest.mark.parametrize("schedule", ["per-sequence", "cascade"])
def test_a_masked_cascade_leaves_what_its_graph_means(schedule: str, numbers: dict[str, int]) -> None:
    """A query that sees no key of its own still sees the prefix."""
    graph = variant("cascade").graph("causal")
    inputs = random_inputs(graph, numbers, np.random.default_rng(2))
    wanted = evaluate(graph, inputs, {"c": 0.5}, numbers)["O"]
    found = execute(plan(schedule).derive(graph).schedule, inputs, {"c": 0.5}, numbers)["O"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("schedule", ["op-by-op", "per-sequence", "cascade"])
@pytest.mark.parametrize(("prefix", "own"), [(1.0, 3000.0), (3000.0, 1.0)])
def test_a_cascade_does_not_overflow_where_scores_lie_far_apart(schedule: str, prefix: float, own: float) -> None:
    """exp(3000) is beyond float64, as exp(89) is beyond fp32: the states are merged relative to the larger maximum."""
    numbers = {"B": 2, "h_k": 1, "h": 2, "N_q": 2, "N_p": 5, "N_k": 4, "d": 1, "d_v": 2, "B_r": 2, "B_c": 3}
    graph = variant("cascade").graph()
    inputs = {name: np.abs(a) + 0.5 for name, a in random_inputs(graph, numbers, np.random.default_rng(3)).items()}
    inputs |= {"Kp": prefix * inputs["Kp"], "K": own * inputs["K"]}
    found = execute(plan(schedule).derive(graph).schedule, inputs, {"c": 1.0}, numbers)["O"]
    scores = (
        np.einsum("bgrqd,gpd->bgrqp", inputs["Q"], inputs["Kp"]),
        np.einsum("bgrqd,bgkd->bgrqk", inputs["Q"], inputs["K"]),
    )
    joint = np.concatenate(scores, axis=-1)
    weights = np.exp(joint - joint.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    wanted = np.einsum("bgrqp,gpe->bgrqe", weights[..., :5], inputs["Vp"])
    wanted += np.einsum("bgrqk,bgke->bgrqe", weights[..., 5:], inputs["V"])
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@settings(max_examples=12)
@given(numbers=shapes())
@pytest.mark.parametrize("schedule", ["op-by-op", "per-sequence", "cascade"])
def test_a_cascade_is_attention_over_prefix_and_own_keys(schedule: str, numbers: dict[str, int]) -> None:
    """Each sequence against plain attention over its keys with the prefix put before them; several sequences at once."""
    graph = variant("cascade").graph()
    inputs = random_inputs(graph, numbers, np.random.default_rng(1))
    found = execute(plan(schedule).derive(graph).schedule, inputs, {"c": 0.5}, numbers)["O"]
    for at in np.ndindex(*found.shape[:3]):
        sequence, group, _ = at
        keys = np.concatenate([inputs["Kp"][group], inputs["K"][sequence, group]])
        values = np.concatenate([inputs["Vp"][group], inputs["V"][sequence, group]])
        scores = np.exp(0.5 * inputs["Q"][at] @ keys.T)
        wanted = scores @ values / scores.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(found[at], wanted, rtol=1e-9, atol=1e-12)


@settings(max_examples=12)
@given(numbers=shapes())
@pytest.mark.parametrize("schedule", ["per-sequence", "cascade"])
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_a_cascade_moves_what_the_walker_counts(schedule: str, mask: str, numbers: dict[str, int]) -> None:
    """Ragged tiles of (query, sequence, head) rows included; a mask thins the own keys and leaves the prefix whole."""
    schedule_ = plan(schedule).derive(variant("cascade").graph(mask)).schedule
    assert counted(schedule_, numbers) == walked(schedule_, numbers)


# --- chunks of a prompt, and drafts of a few tokens -------------------------------------------------------------------

CHUNK, PROMPT = 8192, 131_072
LAYERS = 80


def layers(sizes: int) -> float:
    """Bytes of all layers."""
    return float(LAYERS * sizes)


def chunk(rows: int, prompt: int = PROMPT) -> Account:
    """A chunk of 8192 new tokens after a prompt, one KV head a rank: the prompt's keys, then the chunk's own, causal."""
    words = f"cascade Nq={CHUNK} Nk={CHUNK} prefix={prompt} h=1 d=128 mask=causal Br={rows}"
    return ask(words, "per-sequence", on=None)


def test_case_55_three_readings_of_what_a_chunk_reads_of_its_prompt() -> None:
    """https://github.com/sgl-project/sglang/issues/34298: 43.98 TB without reuse, 343.6 GB by query tile, 5.37 GB once."""
    without, tiled = chunk(1), chunk(128)
    assert layers(moved(without, without.sm, "Kp", "Vp")) == pytest.approx(43.98e12, rel=1e-4)
    assert layers(moved(tiled, tiled.sm, "Kp", "Vp")) == pytest.approx(343.6e9, rel=1e-4)
    assert layers(moved(tiled, tiled.compulsory, "Kp", "Vp")) == pytest.approx(5.37e9, rel=1e-3)


def test_case_55_the_pairs_of_a_chunk() -> None:
    """C p + c(c+1)/2, not (c^2 + c)/2: 33 times as many; a mask says the same as a prefix of its own."""
    pairs_ = CHUNK * PROMPT + CHUNK * (CHUNK + 1) // 2
    assert pairs_ == 1_107_300_352
    whole = f"gqa Nq={CHUNK} Nk={PROMPT + CHUNK} d=128 mask=causal"
    assert matmul_flop(whole, on=None) == 4 * 128 * pairs_
    apart = chunk(128)
    assert apart.exact(apart.useful[Pipe.MMA]) == 4 * 128 * pairs_
    assert round(Fraction(pairs_, CHUNK * (CHUNK + 1) // 2)) == 33


def test_case_55_sixteen_chunks_read_their_prompts_seven_and_a_half_times() -> None:
    """983,040 tokens of earlier chunks for a prompt of 131,072, however well each chunk reuses what it reads."""
    a_token = 2 * 128 * 2
    found = [ask(f"gqa Nq={CHUNK} Nk={CHUNK * n} d=128 mask=causal", "flash2", on=None) for n in range(1, 17)]
    again = sum(moved(a, a.compulsory, "K", "V") for a in found) // a_token - PROMPT
    assert again == 983_040
    assert again / PROMPT == 7.5


@pytest.mark.parametrize("drafted", [2, 4, 8])
def test_a_draft_of_a_few_tokens_reads_the_cache_once(drafted: int) -> None:
    """Leviathan et al. 2023, arXiv:2211.17192, section 3.4: verifying costs the memory accesses of one decode step.

    The tokens of a draft see each other causally; with a group's heads they fill one tile, so intensity grows with them.
    """
    question = "h=32 hk=8 d=128"
    draft = ask(f"gqa Nq={drafted} Nk={8192 + drafted} {question} mask=causal", "flash2-packed")
    single = ask(f"gqa Nq=1 Nk={8192 + drafted} {question} mask=causal", "flash2-packed")
    assert moved(draft, draft.sm, "K", "V") == moved(single, single.sm, "K", "V")
    assert draft.intensity / single.intensity == pytest.approx(drafted, rel=0.01)  # type: ignore[operator]
    seen = drafted * 8192 + drafted * (drafted + 1) // 2
    assert draft.exact(draft.useful[Pipe.MMA]) == 4 * 128 * 32 * seen

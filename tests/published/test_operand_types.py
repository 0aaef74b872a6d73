"""Products at the rate of their own operands' type: times worked out by hand, on machines whose peaks differ by type.

Sources: DeepSeek-AI 2025, arXiv:2512.02556, section 2.1 (an indexer in FP8 beside attention in BF16); peaks as the files of
`hardware/data` cite them: H100 SXM 989.4 TFLOP/s in BF16 and 1978.9 in FP8, A100 SXM 312 in BF16 and none in FP8.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from derive.exact import value
from hardware import load
from outputs.pictures.amounts import amounts
from outputs.waves import Waves
from tests.outputs.command import derive
from tests.published.questions import ask, explain

BF16, FP8 = Fraction(9894, 10) * 10**12, Fraction(19789, 10) * 10**12
SIZES = "N=4096 h=64 dc=512 dr=64 hi=64 di=128 topk=2048"
INDEXER = 2 * 64 * 128 * 4096 * 4096
"""hi heads, di channels, every query with every key."""
CORE = 2 * 64 * (512 + 64 + 512) * 4096 * 2048
"""h heads, latent and rotary scores and latent values, every query with its topk keys."""


def test_an_fp8_indexer_runs_at_the_fp8_rate_and_attention_at_its_own() -> None:
    """275 GFLOP at 1978.9 and 1168 GFLOP at 989.4 TFLOP/s, one after the other; in BF16 throughout, all at 989.4."""
    narrow, wide = (ask(f"dsa {SIZES} {words}", "per-query") for words in ("indexer=fp8", ""))
    assert {n: narrow.exact(f) for n, f in narrow.matmul_by_type.items()} == {"fp8": INDEXER, "bf16": CORE}
    assert narrow.times["mma"] == pytest.approx(float(INDEXER / FP8 + CORE / BF16), rel=1e-12)
    assert wide.times["mma"] == pytest.approx(float((INDEXER + CORE) / BF16), rel=1e-12)
    assert narrow.converted == 0


def test_a_type_without_a_rate_is_converted_to_the_operands_type() -> None:
    """An A100 multiplies no FP8: the indexer's queries and keys become BF16, and all runs at 312 TFLOP/s."""
    found = ask(f"dsa {SIZES} indexer=fp8", "per-query", on="a100-sxm-80gb")
    assert set(found.matmul_by_type) == {"bf16"}
    assert found.times["mma"] == pytest.approx((INDEXER + CORE) / 312e12, rel=1e-12)
    (kernel,) = (k for k in found.derivation.schedule.kernels if "X" in k.einsums)
    read = found.exact(found.kernel_converted(kernel))
    sides = {n: found.exact(m.read) for n, m in found.sm.by_tensor.items() if n in ("Q_I", "K_I")}
    assert read == sum(sides.values()) > 0  # one byte an element


@pytest.mark.parametrize(
    ("types", "scores", "values"),
    [
        ("", BF16, BF16),
        ("dtype=fp8", FP8, FP8),
        ("kv=fp8", BF16, BF16),  # mixed: K and V become BF16
        ("kv=fp8 probs=fp8", BF16, FP8),  # the second product multiplies two FP8 operands
        ("probs=fp8", BF16, BF16),
        ("dtype=fp8 kv=bf16", BF16, BF16),
        ("scores=fp32", BF16, BF16),  # weights kept in FP32 are narrowed to what V is
    ],
)
def test_each_product_has_the_type_of_its_own_operands(types: str, scores: Fraction, values: Fraction) -> None:
    """Q K^T and P V, 2 N^2 d FLOP each: mixed operands meet in the wider type."""
    found = ask(f"mha N=1024 d=128 {types}", "naive")
    each = 2 * 1024 * 1024 * 128
    assert found.times["mma"] == pytest.approx(float(each / scores + each / values), rel=1e-12)


def test_only_what_meets_a_wider_operand_is_converted() -> None:
    """K meets BF16 queries; V meets stored FP8 weights, and neither of the two is converted: 1024 x 128 of K are left."""
    both, one = (ask(f"mha N=1024 d=128 {types}", "naive") for types in ("kv=fp8", "kv=fp8 probs=fp8"))
    assert both.exact(both.converted) == 2 * 1024 * 128
    assert one.exact(one.converted) == 1024 * 128


def test_the_text_says_each_type_with_its_rate_and_time() -> None:
    """And that times add; where all products are of one type it says neither."""
    words = f"explain dsa {SIZES} indexer=fp8 --schedule per-query --on h100-sxm"
    shown = " ".join(derive(*words.split()).out.split())
    assert "per-query: fp8 products 274.9 GFLOP at 1.979 PFLOP/s, peak_fp8 = 1978.9 TFLOP/s: 138.9 us" in shown
    assert "per-query: bf16 products 1.168 TFLOP at 989.4 TFLOP/s, peak_bf16 = 989.4 TFLOP/s: 1.181 ms" in shown
    assert "each at the rate of its own operands' type, so their times add" in shown
    plain = derive(*words.replace("indexer=fp8 ", "").split()).out
    assert "products run one after another" not in plain
    assert "matmul at 989.4 TFLOP/s" in plain


def test_sliders_and_waves_take_the_same_time() -> None:
    """The page's formula and the model of waves time products as the table does."""
    answer = explain(f"dsa {SIZES} indexer=fp8", "per-query")
    (account,) = answer.accounts
    at = {**account.values, "N": 4096}
    assert float(value(amounts(answer, account)["time.mma"], at)) == pytest.approx(account.times["mma"] or 0, rel=1e-12)
    bound = ask("mha N=64K d=256 Br=128 Bc=64 kv=fp8 scores=fp8", on="gh200-96gb")
    each = 2 * 65536 * 65536 * 256
    assert bound.bound == "mma"
    bf16, fp8 = (load("gh200-96gb").peak(name).value for name in ("bf16", "fp8"))
    waves = Waves(bound).seconds(bound.values)
    assert waves == (each / bf16 + each / fp8) / Fraction(512, 4 * 132)


def test_what_fits_no_tile_is_refused_by_a_size_that_the_variant_has() -> None:
    """A thousand indexer heads a query fit no shared memory; dsa has no d to name in the refusal."""
    answer = derive(*f"explain dsa {SIZES} --on h100-sxm --schedule per-query".replace("hi=64", "hi=1024").split())
    assert answer.code == 3
    assert "even tiles of one row do not fit: the largest hi that does is " in answer.err


def test_what_two_products_multiply_is_converted_for_the_wider() -> None:
    """Latents meet BF16 queries and FP8 weights: brought in once for both, they are converted for the first."""
    found = ask("mla-latent N=1024 h=16 dc=512 dr=64 kv=fp8 scores=fp8", "flash2")
    assert set(found.matmul_by_type) == {"bf16", "fp8"}
    assert found.converted == ask("mla-latent N=1024 h=16 dc=512 dr=64 kv=fp8", "flash2").converted != 0

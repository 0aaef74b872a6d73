"""Public reports of masked attention counts, by the number they have in the project's collection, each with its link.

Most of the reported formulas are wrong for some shape: the right value stands here, from ``derive explain`` or the mask.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from derive.attention import variant
from derive.exact import value
from derive.flops import Pipe
from derive.masks import Pattern
from derive.symbols import N_k, N_q
from outputs.explanation import Explanation
from outputs.request import read_request
from outputs.sparsity import lines
from tests.outputs.command import derive
from tests.published.questions import ask, matmul_flop, moved


def pairs(name: str, rows: int, columns: int, **sizes: int) -> int:
    """Pairs that a mask keeps."""
    keys = frozenset({"left", "right"}) if "W_l" in sizes else frozenset()
    mask = Pattern(name, keys).mask(N_q, N_k)
    assert mask is not None
    return int(value(mask.pairs, {"N_q": rows, "N_k": columns, **sizes}))


@pytest.mark.parametrize(("n", "left", "right", "kept"), [(16, 4, 2, 99), (8192, 256, 256, 4_136_704)])
def test_case_10_a_two_sided_window_is_never_negative(n: int, left: int, right: int, kept: int) -> None:
    """https://github.com/Dao-AILab/flash-attention/pull/1883: a sign slip gave 38 and -24,704 pairs."""
    assert pairs("window", n, n, W_l=left, W_r=right) == kept
    assert matmul_flop(f"mha N={n} d=64 mask=window left={left} right={right}") == 4 * 64 * kept


@pytest.mark.parametrize(("rows", "columns"), [(2, 5), (5, 2), (1, 8192), (8192, 1), (7, 7), (33, 20)])
def test_case_9_an_alignment_does_not_flip_with_the_longer_side(rows: int, columns: int) -> None:
    """https://github.com/ml-explore/mlx/issues/2835: one rule an expression, bottom-right of (a, b) is top-left of (b, a)."""
    bottom, top = pairs("causal", rows, columns), pairs("causal-tl", rows, columns)
    assert bottom == pairs("causal-tl", columns, rows)
    assert (bottom == top) == (rows == columns)
    kept = sum(k <= q + columns - rows for q in range(rows) for k in range(columns))
    assert bottom == kept


@pytest.mark.parametrize(("mask", "sizes", "says"), [
    ("causal", "Nq=5 Nk=2", "mask=causal-tl is top-left and would keep 9 pairs, not 3"),
    ("causal-tl", "Nq=5 Nk=2", "mask=causal is bottom-right and would keep 3 pairs, not 9"),
    ("causal", "Nq=2 Nk=5", "mask=causal-tl is top-left and would keep 3 pairs, not 9"),
    ("causal", "N=5", ""),
])  # fmt: skip
def test_case_9_both_alignments_are_said_where_they_differ(mask: str, sizes: str, says: str) -> None:
    """The reader of 9 pairs sees at once which rule gave them; of a square there is nothing to say."""
    shown = " ".join(derive("explain", "mha", *sizes.split(), "d=4", f"mask={mask}", "--schedule", "naive").out.split())
    assert (
        f"aligned {'top-left' if mask.endswith('-tl') else 'bottom-right'}, whichever side is longer" in shown
    ) == bool(says)
    assert says in shown


def test_case_11_rows_that_see_nothing_count_nothing() -> None:
    """The benchmark's own formula leaves rows of a window below zero: (8, 4) with (1, 1) keeps 11 pairs, not 8."""
    assert pairs("window", 8, 4, W_l=1, W_r=1) == 11


def test_case_12_a_window_is_not_half_of_s_times_w() -> None:
    """https://github.com/NVIDIA/Megatron-LM/pull/3280: S W/2 is 1.75 times too small at S = 2048, W = 512, S W 1.14 too big."""
    words = "mha N=2048 d=128 mask="
    exact = matmul_flop(words + "window W=512") // 512
    assert exact == pairs("window", 2048, 2048, W=512) == 917_760
    assert Fraction(exact, 2048 * 512 // 2) == pytest.approx(1.75, abs=0.01)
    assert Fraction(matmul_flop(words + "causal") // 512, exact) == pytest.approx(2.29, abs=0.01)


def test_case_14_a_window_longer_than_the_sequence_is_causal() -> None:
    """https://github.com/allenai/OLMo-core/pull/478: S = 100, W = 512 keeps 5050 pairs, neither 51,200 nor 10,000."""
    assert matmul_flop("mha N=100 d=1 mask=window W=512") == 4 * 5050


def test_case_17_packed_documents_add_up() -> None:
    """https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/3839: sum s^2, never (sum s)^2; causal sum s (s + 1)/2."""
    even = ",".join(["512"] * 16)
    mixed = "4096,2048,1024,512,256,128,64,64"
    assert matmul_flop(f"mha d=1 mask=docs-full docs={even}") == 4 * 4_194_304
    assert matmul_flop(f"mha d=1 mask=docs-full docs={mixed}") == 4 * 22_372_352
    assert matmul_flop(f"mha N=8192 d=1 mask=docs docs={mixed}") == 4 * 11_190_272


def test_case_18_a_block_is_not_less_than_nothing_sparse() -> None:
    """https://github.com/pytorch/pytorch/pull/188868: 100 x 100 in blocks of 128 is one block of one; by pairs 49.5 %."""
    found = ask("mha N=100 d=128 mask=causal Br=128 Bc=128")
    assert found.exact(found.executed[Pipe.SFU]) == 128 * 128
    assert 1 - Fraction(found.exact(found.useful[Pipe.SFU]), 100**2) == Fraction(495, 1000)


def test_case_55_pairs_of_a_prefill_chunk() -> None:
    """https://github.com/sgl-project/sglang/issues/34298: c p + c (c + 1)/2 pairs for c new and p cached tokens."""
    new, cached = 8192, 131_072
    assert pairs("causal", new, new + cached) == 1_107_300_352


def test_a_windowed_decode_step_reads_its_window() -> None:
    """One query over a cache of 8192 keys with a window of 1024: 1024 keys of K and of V, whatever the cache holds."""
    found = ask("decode Nk=8192 d=128 mask=window W=1024", "naive")
    assert moved(found, found.compulsory, "K", "V") == 2 * 1024 * 128 * 2


@pytest.mark.parametrize(("length", "tile", "kept", "of"), [(100, 128, 1, 1), (8192, 128, 2080, 4096)])
def test_case_18_sparsity_is_said_at_each_level_by_itself(length: int, tile: int, kept: int, of: int) -> None:
    """https://github.com/pytorch/pytorch/pull/188868: 100 x 100 causal in blocks of 128 was called -63.84 % sparse.

    No block is left out, so 0 % by tile; by element 1 - P/N^2 = 49.5 %. No level goes below none.
    """
    answer = derive("explain", "mha", f"N={length}", "d=8", "mask=causal", f"Br={tile}", f"Bc={tile}", "--json").json
    found = answer["schedules"]["flash2"]["sparsity"]
    assert (found["tiles"]["kept"]["value"], found["tiles"]["of"]["value"]) == (kept, of)
    pairs = length * (length + 1) // 2
    assert (found["pairs"]["kept"]["value"], found["pairs"]["of"]["value"]) == (pairs, length**2)


def test_case_18_a_list_of_blocks_has_a_level_of_its_own() -> None:
    """The same pattern as blocks that the mask lists: one of one, all pairs in it; the text names which level it means."""
    out = derive("explain", "mha", "N=100", "d=8", "mask=causal", "Br=128", "Bc=128").out
    assert "the mask keeps 5,050 of 10,000 pairs: 49.50 % sparse by element" in out
    assert "flash2 runs 1 of 1 tiles: 0 % sparse by tile" in out
    request = read_request(
        variant("mha"), ["N=100", "d=8", "mask=blocks", "block=32", "blocks=0/0,1/0,2/1-3", "Br=64", "Bc=64"]
    )
    assert lines(Explanation(request, ("flash2",)).accounts) == [
        "the mask keeps 5,392 of 10,000 pairs: 46.08 % sparse by element",
        "the mask keeps 8 of 16 blocks: 50 % sparse by block of the mask",
        "flash2 runs 3 of 4 tiles: 25 % sparse by tile",
    ]

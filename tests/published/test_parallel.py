"""Published figures of attention on several devices, each with its source."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp

from derive.attention import variant
from derive.symbols import N, R
from hardware import load
from outputs.devices import Division, divisions
from outputs.request import read_request


def divided(words: str, scheme: str, *, on: str | None = None, link: int | None = None) -> Division:
    """The one scheme for ``derive devices WORDS --scheme SCHEME``."""
    name, *symbols = words.split()
    request = read_request(variant(name), symbols, also=("R",))
    bandwidth = None if link is None else Fraction(link)
    ((found,), _) = divisions(request, scheme, load(on) if on else None, bandwidth)
    return found


def test_ring_attention_s_step_and_block() -> None:
    """Liu et al. 2023, arXiv:2310.01889, section 3: 4 d c^2 FLOP and 4 c d bytes a step (bf16), hidden where c >= F/B."""
    ring = divided("mha devices=16 N=64K d=128", "ring")
    c = 64 * 1024 // 16
    assert ring.step_flop is not None
    assert ring.number(ring.step_flop) == 4 * 128 * c**2
    assert ring.number(ring.step_link) == 4 * c * 128


@pytest.mark.parametrize(
    ("link", "block", "published", "sequence"),
    [(None, 1040, 1_000, 6_000), (12_500_000_000, 24_960, 24_500, 149_500)],
    ids=["NVLink", "InfiniBand"],
)
def test_ring_attention_s_table_of_minimal_blocks(link: int | None, block: int, published: int, sequence: int) -> None:
    """The same, table 2: A100 with NVLink 312 T / 300 G = 1040 tokens, about 1K and 6K; InfiniBand 24.5K and 149.5K.

    Six blocks (its 6 b c h of memory) are the sequence it asks for; it rounds.
    """
    ring = divided("mha devices=8 N=64K d=128", "ring", on="a100-sxm-80gb", link=link)
    assert ring.number(ring.block) == block
    assert block == pytest.approx(published, rel=0.05)
    assert 6 * block == pytest.approx(sequence, rel=0.05)


def test_ring_attention_s_memory_is_six_blocks() -> None:
    """The same, section 3: a query block, two of K and V, two more that arrive, and the output: 6 b c h elements."""
    ring = divided("mha devices=8 N=64K d=128 h=32 B=2", "ring")
    hidden, c, batch, width = 32 * 128, 64 * 1024 // 8, 2, 2
    assert ring.number(ring.device.memory) == 6 * batch * c * hidden * width


@pytest.mark.parametrize(("devices", "limit"), [(4, Fraction(7, 4)), (8, Fraction(15, 8))])
def test_case_82_the_last_device_of_a_causal_ring_has_nearly_twice_the_mean(devices: int, limit: Fraction) -> None:
    """https://github.com/mlc-ai/pith-train/pull/39: (2R - 1)/R, 1.75 for 4 devices (1.67 measured) and 1.875 for 8.

    That is for long sequences, where the diagonal is nothing; at N tokens it is (2 N R - N + R)/(R (N + 1)).
    """
    ring = divided(f"mha devices={devices} N=64K d=128 mask=causal", "ring")
    balance = ring.balance
    assert balance is not None
    for amount in (balance.busiest, balance.lock_step):
        assert balance.limit(amount) == sp.cancel((2 * R - 1) / R)
        assert balance.limit(amount).subs(R, devices) == sp.Rational(limit.numerator, limit.denominator)
        assert sp.cancel(balance.ratio(amount) - (2 * N * R - N + R) / (R * (N + 1))) == 0
    assert ring.busiest_over_mean == ring.lock_step_over_mean
    assert float(ring.busiest_over_mean or 0) == pytest.approx(float(limit), rel=1e-4)


@pytest.mark.parametrize("devices", [2, 4, 8, 64])
def test_case_82_zig_zag_is_even(devices: int) -> None:
    """https://github.com/zhuzilin/ring-flash-attention/issues/2: exactly 1, of the busiest device and in lock-step."""
    ring = divided(f"mha devices={devices} N=8K d=128 mask=causal", "ring-zigzag")
    assert (ring.busiest_over_mean, ring.lock_step_over_mean) == (1, 1)


@pytest.mark.parametrize("kv", [4, 8, 32])
def test_ulysses_volume_and_the_ring_s(kv: int) -> None:
    """Jacobs et al. 2023, arXiv:2309.14509: 4 B N h/P (P-1)/P elements of d against 2 B N h_kv (P-1)/P for a ring."""
    sizes = f"gqa devices=4 N=8K d=128 h=32 hk={kv} B=2"
    row = 2 * 8192 * 128 * 2
    ulysses, ring = divided(sizes, "ulysses"), divided(sizes, "ring")
    by_tensor = {name: ulysses.number(amount) for name, amount in ulysses.link_by_tensor.items()}
    assert by_tensor["Q"] == by_tensor["O"] == Fraction(row * 32, 4) * Fraction(3, 4)
    assert by_tensor["K"] == by_tensor["V"] == Fraction(row * kv, 4) * Fraction(3, 4)
    assert ring.number(ring.link) == 2 * row * kv * Fraction(3, 4)
    if kv == 32:
        assert ulysses.number(ulysses.link) == Fraction(4 * row * 32, 4) * Fraction(3, 4)


@pytest.mark.parametrize(
    ("hk", "devices", "heads", "copies"), [(2, 4, 1, 2), (8, 32, 1, 4), (8, 4, 2, 1), (8, 8, 1, 1), (1, 8, 1, 8)]
)
def test_case_77_kv_heads_a_rank(hk: int, devices: int, heads: int, copies: int) -> None:
    """https://github.com/sgl-project/sglang/pull/19086: max(1, ceil(hk/tp)) a rank, tp/hk copies: 4 stored, 2 logical.

    So 8 heads on 32 ranks divide a token's bytes by 8, not by 32.
    """
    ranks = divided(f"gqa devices={devices} N=8K d=128 h=32 hk={hk}", "tensor-parallel")
    keys = next(t for t in ranks.device.tensors if t.name == "K")
    head = 8192 * 128
    assert ranks.number(ranks.heads["g"]) == heads == max(1, -(-hk // devices))
    assert ranks.number(ranks.device.stored(keys)) == heads * devices * head
    assert ranks.number(keys.size) == hk * head
    assert Fraction(ranks.number(ranks.device.stored(keys)) or 0, hk * head) == copies
    assert Fraction(hk * head, ranks.number(ranks.device.stored(keys) / R) or 1) == min(hk, devices)

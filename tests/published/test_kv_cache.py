"""Published sizes of key/value caches, each with its source."""

from __future__ import annotations

from fractions import Fraction

import pytest

from derive.attention import variant
from derive.cache import token_elements
from derive.symbols import d, d_c, d_r, d_v, h, h_k
from outputs.kv_cache import KvCache
from outputs.request import read_request

GiB, MiB = 2**30, 2**20


def kept(words: str, budget: int | None = None) -> KvCache:
    """The cache of ``derive cache WORDS``."""
    name, *symbols = words.split()
    return KvCache(read_request(variant(name), symbols, also=("L", "L_w", "R", "n_page")), budget)


def test_case_74_bytes_a_token() -> None:
    """https://github.com/jranaraki/vllm-fit/issues/2: 2 L hk d b = 524,288 B for 32 layers of 32 heads; not 4,194,304."""
    cache = kept("mha layers=32 h=32 d=128")
    assert cache.number(cache.stack.slope()) == 524_288
    halved = kept("gqa layers=32 h=32 hk=8 d=128 kv=fp8")
    assert halved.number(halved.stack.slope()) == 524_288 // 8


def test_case_87_d_a_shard_of_80_layers() -> None:
    """https://github.com/TensorDirect/KVDirect/issues/2: 16K tokens, 80 layers, 1 KV head a rank, d = 128, bf16: 640 MiB."""
    for devices in (8, 16):
        cache = kept(f"gqa layers=80 h=64 hk=8 devices={devices} d=128 N=16K")
        assert cache.number(cache.stack.bytes) == 640 * MiB


@pytest.mark.parametrize(("name", "heads"), [("mha", h), ("gqa", h_k), ("mqa", 1)])
def test_deepseek_v2_table_1_elements_a_token(name: str, heads: object) -> None:
    """DeepSeek-V2, arXiv:2405.04434, table 1: 2 n_h d_h, 2 n_g d_h and 2 d_h elements a token and layer."""
    found = sum(token_elements(variant(name).graph()).values())
    assert found.subs(d_v, d).expand() == 2 * heads * d


@pytest.mark.parametrize("name", ["mla", "mla-latent"])
def test_deepseek_v2_table_1_and_flash_mla_s_latent(name: str) -> None:
    """The same: (d_c + d_h^R) l for latent attention; FlashMLA's docs: 576 x 2 x 62 x 128 x 1024 B = 8.72 GiB."""
    cache = kept(f"{name} layers=62 dc=512 dr=64 N=128K")
    assert sum(cache.elements.values()) == d_c + d_r
    bytes_held = cache.number(cache.stack.bytes)
    assert bytes_held == 576 * 2 * 62 * 128 * 1024
    assert round(float(bytes_held) / GiB, 2) == 8.72


def test_case_77_a_latent_is_cached_whole_on_every_rank() -> None:
    """https://github.com/sgl-project/sglang/pull/19086: heads are dealt to ranks, and the latent has none."""
    alone, ranks = kept("mla-latent layers=62 dc=512 dr=64"), kept("mla-latent layers=62 dc=512 dr=64 h=128 devices=8")
    assert ranks.number(ranks.stack.slope()) == alone.number(alone.stack.slope())


def test_a_hybrid_stack_grows_by_its_full_layers_alone() -> None:
    """24 of 32 layers with a window of 1024: 32 KiB a token past it, 128 KiB before; the inverse is exact."""
    cache = kept("gqa layers=32 windowed=24 mask=window W=1024 h=32 hk=8 d=128 N=128K", 40 * GiB)
    assert [cache.number(amount) for _, amount in cache.slopes] == [128 * 1024, 32 * 1024]
    assert cache.number(cache.stack.bytes) == 8 * 128 * 1024 * 4096 + 24 * 1024 * 4096
    assert cache.longest == (40 * GiB - 24 * 1024 * 4096) // (8 * 4096)
    assert cache.longest_form is not None
    assert cache.number(cache.longest_form) == cache.longest


@pytest.mark.parametrize(
    ("tokens", "page", "used"), [(17, 16, "53.1"), (100, 256, "39.1"), (8191, 16, "99.99"), (32, 16, "100")]
)
def test_case_76_a_last_page_is_allocated_whole_and_not_read(tokens: int, page: int, used: str) -> None:
    """https://github.com/vllm-project/vllm/pull/57336 (17 of 16 a page: 53.1 %), pages of 256: .../vllm/pull/2744.

    n / (B ceil(n/B)) of what is allocated holds tokens; bytes of keys and values are those of n tokens, whatever the page.
    """
    cache = kept(f"gqa layers=1 h=32 hk=8 d=128 N={tokens} page={page}")
    shares = dict(cache.paged)
    share = cache.number(shares["used"])
    assert share == Fraction(tokens, page * -(-tokens // page))
    digits = len(used.partition(".")[2])
    assert f"{float(100 * share):.{digits}f}" == used
    assert cache.number(shares["allocated"]) == page * -(-tokens // page) * 4096
    assert cache.number(cache.stack.bytes) == tokens * 4096 == kept_without_pages(tokens)


def kept_without_pages(tokens: int) -> int:
    """Bytes of the same cache in one piece."""
    alone = kept(f"gqa layers=1 h=32 hk=8 d=128 N={tokens}")
    assert alone.paged == ()
    assert alone.allocated == alone.stack.bytes
    return int(alone.number(alone.stack.bytes) or 0)


def test_case_76_the_table_is_a_hundredth_of_a_percent() -> None:
    """The same: 4 B a page of 16 tokens of 8 heads of 128 bf16 channels, 0.006 % of the bytes of keys and values."""
    cache = kept("gqa layers=32 h=32 hk=8 d=128 N=8192 page=16")
    shares = dict(cache.paged)
    assert cache.number(shares["table"]) == 32 * 4 * 8192 // 16
    assert f"{float(100 * cache.number(shares['table_share'])):.3f}" == "0.006"


def test_pages_are_what_a_budget_holds_and_a_window_keeps_its_own() -> None:
    """16 pages of 256 tokens fit 16 MiB of 4 KiB tokens whole; a window of 1000 tokens takes four pages at any length."""
    assert kept("gqa layers=1 h=32 hk=8 d=128 page=256", 16 * MiB + 255 * 4096).longest == 4096
    assert kept("gqa layers=1 h=32 hk=8 d=128", 16 * MiB + 255 * 4096).longest == 4096 + 255
    windowed = kept("gqa layers=2 windowed=1 mask=window W=1000 h=32 hk=8 d=128 N=10000 page=256")
    assert windowed.number(windowed.allocated) == (40 + 4) * 256 * 4096

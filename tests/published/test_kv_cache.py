"""Published sizes of key/value caches, each with its source."""

from __future__ import annotations

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
    return KvCache(read_request(variant(name), symbols, also=("L", "L_w", "R")), budget)


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

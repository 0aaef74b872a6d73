"""Bytes over links, memory and copies of each scheme, against devices that pass rows on."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import PreconditionError
from derive.exact import value
from derive.graph import Graph
from derive.parallel.link import Device, head_tiles, heads
from derive.symbols import B_link, F, N_k, N_q, R, b_kv, d, h
from rules.parallel import names, scheme
from tests.derive.parallel.simulation import Played, deal, play_fetching, play_ring, rows_of_heads

WIDTH = 2


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, int]:
    """Sizes that every scheme can divide: tokens by 2 R, heads by R, key/value heads one way or the other."""
    devices = draw(st.integers(2, 4))
    kv_heads = draw(st.sampled_from([1, devices, 2 * devices, *([2] if devices == 4 else [])]))
    group = draw(st.integers(1, 2)) * (devices if kv_heads % devices else 1)
    tokens = 2 * devices * draw(st.integers(1, 3))
    return {
        "R": devices, "h_k": kv_heads, "h": kv_heads * group, "N_q": tokens, "N_k": tokens, "d": 3, "d_v": 3, "B": 1,
        "b": WIDTH, "b_kv": WIDTH, "b_s": WIDTH, "b_p": WIDTH,
    }  # fmt: skip


def played(name: str, at: dict[str, int]) -> Played:
    """The scheme, played through."""
    devices, tokens = at["R"], at["N_q"]
    shards = deal(tokens, devices, name == "ring-zigzag")
    owner = {t: r for r, mine in enumerate(shards) for t in mine}
    if name.startswith("ring"):
        return play_ring(shards, shards, at["h_k"], at["h"], lambda _q, _k: True)
    if name == "all-gather":
        everything = {(n, g, t) for n in ("K", "V") for g in range(at["h_k"]) for t in range(tokens)}
        needs = [{("Q", x, t) for x in range(at["h"]) for t in mine} | everything for mine in shards]
        makes = [{("O", x, t) for x in range(at["h"]) for t in mine} for mine in shards]
        return play_fetching(needs, makes, lambda row: owner[row[2]])
    needs, makes = rows_of_heads(devices, tokens, at["h"], at["h_k"])
    return play_fetching(needs, makes, (lambda row: owner[row[2]]) if name == "ulysses" else (lambda _row: None))


@pytest.mark.parametrize("name", names())
@settings(max_examples=25, deadline=None)
@given(at=shapes())
def test_link_bytes_and_memory_are_those_of_devices_that_pass_rows_on(name: str, at: dict[str, int]) -> None:
    """Every device receives and sends what the closed form says, and holds no more at once than it says."""
    device = scheme(name).device(variant("gqa").graph())
    seen = played(name, at)
    for tensor in ("Q", "K", "V", "O"):
        move = device.link.by_tensor.get(tensor)
        read, write = (0, 0) if move is None else (value(move.read, at), value(move.write, at))
        for r in range(at["R"]):
            assert seen.received[r, tensor] * at["d"] == read
            if write or not name.startswith("ring"):  # a ring's devices send what the next one receives
                assert seen.sent[r, tensor] * at["d"] == write
    row = at["d"] * WIDTH
    assert {seen.held[r] * row for r in range(at["R"])} == {value(device.memory, at)}


@settings(max_examples=25, deadline=None)
@given(at=shapes())
def test_copies_of_keys_are_counted_by_the_rule_for_rereads(at: dict[str, int]) -> None:
    """Where there are fewer KV heads than devices each lies on several: stored over logical, counted row by row."""
    device = scheme("tensor-parallel").device(variant("gqa").graph())
    needs, _ = rows_of_heads(at["R"], at["N_k"], at["h"], at["h_k"])
    (keys,) = (t for t in device.tensors if t.name == "K")
    stored = sum(row[0] == "K" for mine in needs for row in mine)
    assert value(device.stored(keys), at) == stored * at["d"]
    assert value(keys.size, at) == len({row for mine in needs for row in mine if row[0] == "K"}) * at["d"]


def test_what_every_device_shares_among_pairs_crosses_no_link_and_lies_with_the_queries() -> None:
    """A bias of every pair is cut by queries: a ring's device holds the rows of its own, for all keys."""
    biased = device_of("ring", variant("bias").graph())
    assert "A" not in biased.link.by_tensor
    (bias,) = (t for t in biased.tensors if t.name == "A")
    assert sp.expand(biased.part(bias) - bias.size / R) == 0
    assert biased.stored(bias) == bias.size


def test_latents_go_round_and_not_the_keys_made_of_them() -> None:
    """MLA's ring moves the latent and the rotary key; under tensor parallelism every device holds both whole."""
    latent = device_of("ring", variant("mla").graph())
    assert set(latent.link.by_tensor) == {"C", "K_rope"}
    assert (latent.beside_pairs, device_of("ring").beside_pairs) == (("K", "V"), ())
    ranks = device_of("tensor-parallel", variant("mla").graph())
    copies = {t.name: sp.cancel(ranks.stored(t) / t.size) for t in ranks.tensors}
    assert (copies["C"], copies["K_rope"], copies["W_K"]) == (R, R, 1)


def device_of(name: str, graph: Graph | None = None) -> Device:
    """The scheme for multi-head attention."""
    return scheme(name).device(variant("mha").graph() if graph is None else graph)


def test_a_ring_step_moves_4_c_d_bytes_and_the_block_is_f_over_b() -> None:
    """With bf16 keys and values and c = N/R: 4 c d bytes a head; work hides them from F/B queries on."""
    ring = device_of("ring")
    assert sp.expand(ring.step_bytes.subs({b_kv: 2, sp.Symbol("d_v", positive=True, integer=True): d})) == sp.expand(
        4 * N_k / R * d * h * sp.Symbol("B", positive=True, integer=True)
    )
    assert ring.hiding_block(N_q * N_k / R**2, {}) == F * b_kv / (2 * B_link)
    assert ring.hiding_block(None, {}) is None


def test_what_does_not_stream_has_no_block() -> None:
    """An all-gather fetches everything before it works."""
    gathered = device_of("all-gather")
    assert gathered.steps == 1
    assert gathered.streamed == ()
    assert gathered.hiding_block(N_q * N_k / R**2, {}) is None


def test_head_tiles_cover_all_heads_with_r_devices() -> None:
    """KV heads are cut first; a batch is no head."""
    tiles = head_tiles(variant("gqa").graph())
    assert [i.name for i, _ in tiles] == ["g", "r"]
    assert sp.Mul(*(i.extent / size for i, size in tiles)) == R
    assert [i.name for i in heads(variant("mqa").graph())] == ["r"]


def test_what_has_no_heads_or_is_no_forward_pass_is_refused() -> None:
    """One matrix product has no heads; a backward pass has another nest."""
    with pytest.raises(PreconditionError, match="has no heads"):
        heads(variant("matmul").graph())
    with pytest.raises(PreconditionError, match="schedules a forward pass and this is a backward one"):
        device_of("ring", variant("mha-backward").graph())


def test_a_scheme_is_found_by_name_whatever_was_imported_before() -> None:
    """No file of the folder is called as the function that finds them, which importing it would hide."""
    import rules.parallel

    assert [rules.parallel.scheme(name).name for name in names()] == list(names())
    assert callable(rules.parallel.scheme)

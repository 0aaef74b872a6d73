"""Block-sparse masks known by their density: the mean over random block lists, dense at 1, and a class of their own."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from random import Random

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from derive.attention import variant
from derive.density import Density
from derive.exact import value
from derive.growth import growth
from derive.schedule import Schedule
from derive.symbols import M, N_k, N_q, d, s
from derive.traffic import compulsory, traffic
from rules.derivations import plan
from tests.outputs.command import derive

N = sp.Symbol("N", positive=True, integer=True)


@cache
def schedule(name: str, mask: str = "block-sparse") -> Schedule:
    """mha, one head, d = d_v."""
    return plan(name).derive(variant("mha").graph(mask, ())).schedule


@given(
    rows=st.integers(1, 6),
    keys=st.integers(1, 6),
    tile=st.integers(1, 4),
    chosen=st.integers(1, 36),
    seed=st.integers(0, 99),
)
def test_counts_are_those_of_any_block_list_of_that_density(
    rows: int, keys: int, tile: int, chosen: int, seed: int
) -> None:
    """Blocks drawn at random, tiles that divide: K is read once for each block, and s T_r T_c says how many there are."""
    blocks = Random(seed).sample([(i, j) for i in range(rows) for j in range(keys)], min(chosen, rows * keys))
    numbers = {"N_q": rows * tile, "N_k": keys * tile, "d": 3, "B_r": tile, "B_c": tile}
    numbers["s"] = Fraction(len(blocks), rows * keys)  # type: ignore[assignment]
    read = value(traffic(schedule("flash2")).by_tensor["K"].read, numbers)
    assert read == sum(tile * 3 for _ in blocks)
    mask = schedule("flash2").graph.mask
    assert mask is not None
    assert value(mask.rows_touched, numbers) <= len({i for i, _ in blocks}) * tile
    assert value(mask.keys_touched, numbers) <= len({j for _, j in blocks}) * tile
    assert value(mask.pairs, numbers) == value(mask.rows_touched * mask.columns, numbers) == len(blocks) * tile**2


@pytest.mark.parametrize("name", ["flash1", "flash2", "naive"])
@given(sizes=st.fixed_dictionaries({k: st.integers(1, 40) for k in ("N_q", "N_k", "d", "B_r", "B_c")}))
def test_density_1_is_dense(name: str, sizes: dict[str, int]) -> None:
    """Ragged tiles too; with the keys outside, up to the row tile that stays between visits."""
    kept = value(traffic(schedule(name)).total.amount, {**sizes, "s": 1})
    dense = value(traffic(schedule(name, "full")).total.amount, sizes)
    assert kept == dense


@given(
    sizes=st.fixed_dictionaries({k: st.integers(1, 40) for k in ("N_q", "N_k", "d", "B_r", "B_c")}),
    parts=st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
def test_counts_grow_with_the_density_and_stay_above_the_compulsory_ones(
    sizes: dict[str, int], parts: tuple[int, int]
) -> None:
    """Monotone in s; never less than what must be touched."""
    few, more = sorted(Fraction(part, 20) for part in parts)
    for name in ("flash1", "flash2"):
        cut = schedule(name)
        counts = [value(traffic(cut).total.amount, {**sizes, "s": share}) for share in (few, more)]
        assert counts[0] <= counts[1]
        assert value(compulsory(cut.graph).total.amount, {**sizes, "s": few}) <= counts[0]


@pytest.mark.parametrize("name", ["flash1", "flash2"])
def test_the_class_of_proposition_4(name: str) -> None:
    """Dao et al. 2022, arXiv:2205.14135, proposition 4: N d + N^2 d^2 s/M; the second leads only while s N d >= M."""
    found = growth(schedule(name), {N_q: N, N_k: N})
    assert set(found.monomials) == {N * d, N**2 * d**2 * s / M}
    (lead,) = [x for x in found.leads if x.monomial != N * d]
    assert {found.parameters.condition(f) for f in lead.region.facets} == {(d, M), (M, N * d * s)}


def test_a_density_is_counted_and_not_run() -> None:
    """Which tiles are kept is left open; shares are exact; errors are one sentence."""
    answer = derive("explain", "mha", "N=8192", "d=128", "mask=block-sparse", "s=1/8", "--json")
    flash2 = answer.json["schedules"]["flash2"]
    assert flash2["flops"]["matmul"]["value"] == 8192**2 * 128 * 4 // 8
    refused = derive("check", "mha", "mask=block-sparse", "s=1/2")
    assert refused.code == 2
    assert "says how many tiles are kept and not which" in refused.err
    for words, says in (
        (("s=0",), "more than 0 and at most 1"),
        (("s=3/2",), "more than 0 and at most 1"),
        (("s=1/0",), "more than 0 and at most 1"),
        (("s=nan",), "more than 0 and at most 1"),
        (("W=4",), "W= is used by mask=window"),
    ):
        bad = derive("explain", "mha", "mask=block-sparse", *words)
        assert (bad.code, bad.out) == (2, "")
        assert says in bad.err
    stray = derive("explain", "mha", "mask=causal", "s=1/2")
    assert "s= is used by mask=block-sparse" in stray.err


def test_a_density_that_states_no_share_keeps_every_tile() -> None:
    """The default is all of them."""
    assert Density("some", "", "q", "k", N_q, N_k).pairs == N_q * N_k

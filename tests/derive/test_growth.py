"""Growth classes: derived by tropical duality, against the papers' theorems and against the exact count at the best tiles."""

from __future__ import annotations

from functools import cache

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import DomainError
from derive.exact import value
from derive.footprint import kernel_footprint
from derive.growth import Growth, growth
from derive.schedule import Schedule
from derive.symbols import M, N_k, N_q, d
from derive.traffic import traffic
from rules.derivations import plan

N = sp.Symbol("N", positive=True, integer=True)
TIED = {N_q: N, N_k: N}


@cache
def schedule_of(schedule: str, name: str = "mha", mask: str = "full") -> Schedule:
    """A schedule with one head, d = d_v."""
    return plan(schedule).derive(variant(name).graph(mask, ())).schedule


def class_of(schedule: str, name: str = "mha") -> Growth:
    """Its growth class with both lengths as N."""
    return growth(schedule_of(schedule, name), TIED)


@pytest.mark.parametrize("schedule", ["naive", "op-by-op"])
def test_unfused_attention_grows_with_the_scores(schedule: str) -> None:
    """Dao et al. 2022, arXiv:2205.14135, theorem 2: standard attention is Theta(N d + N^2), whatever M."""
    found = class_of(schedule)
    assert set(found.monomials) == {N * d, N**2}
    assert found.conditions == ()


@pytest.mark.parametrize("schedule", ["flash1", "flash2"])
def test_flash_attention_grows_with_n2_d2_over_m(schedule: str) -> None:
    """Theorem 2: Theta(N^2 d^2/M) for d <= M <= N d; N d beyond. Class and regime both come out."""
    found = class_of(schedule)
    assert found.monomials == (N * d, N**2 * d**2 / M)
    assert set(found.conditions) == {(d, M), (M, N * d)}


def test_row_resident_fusion_needs_the_sequence_to_fit() -> None:
    """Whole rows of scores on chip: it needs N d <= M, and then re-reads N^3 d/M."""
    found = class_of("row-resident")
    assert found.monomials == (N * d, N**3 * d / M)
    assert (N * d, M) in found.conditions


def test_decode_grows_with_the_cache_it_reads() -> None:
    """One query: every key and value once, whatever M."""
    assert growth(schedule_of("flash2", "decode")).monomials == (N_k * d,)


def test_lengths_may_stay_apart() -> None:
    """Cross attention keeps N_q and N_k."""
    assert set(growth(schedule_of("flash2", "cross")).monomials) == {N_q * d, N_k * d, N_q * N_k * d**2 / M}


@pytest.mark.parametrize("schedule", ["flash1", "flash2"])
def test_a_causal_mask_leaves_the_class_as_it_is(schedule: str) -> None:
    """Its sums over tiles are held between half and twice the rectangle's."""
    found = growth(schedule_of(schedule, mask="causal"), TIED)
    assert found.monomials == (N * d, N**2 * d**2 / M)
    assert set(found.conditions) == {(d, M), (M, N * d)}


def test_a_masked_count_asks_for_the_regime_it_depends_on() -> None:
    """Bottom-right causal with more queries than keys has blind queries: which side is longer decides the class."""
    cross = schedule_of("flash2", "cross", "causal")
    with pytest.raises(DomainError, match=r"max\(0, -N_k \+ N_q\) is undecided: give a regime"):
        growth(cross)
    assert growth(cross, where=[(N_q, N_k)]).monomials == (N_k * d, N_k * N_q * d**2 / M)


@settings(max_examples=60)
@given(
    schedule=st.sampled_from(["flash1", "flash2"]),
    n=st.integers(8, 20),
    head=st.integers(3, 8),
    fast=st.integers(0, 10),
)
def test_the_class_is_the_exact_count_at_the_best_tiles_up_to_a_constant(
    schedule: str, n: int, head: int, fast: int
) -> None:
    """Exact elements at the best power-of-two tiles that fit M lie within fixed factors of N d + N^2 d^2/M.

    The lower factor is the dual's certificate (no tiles do better), the upper one the primal's (some tiles reach it).
    """
    head = min(head, n)
    room = 2 ** min(head + 3 + fast, head + n)  # from 8 d to N d: the regime, with space for its smallest tiles
    cut, kernel = schedule_of(schedule), schedule_of(schedule).kernels[0]
    numbers = {"N_q": 2**n, "N_k": 2**n, "d": 2**head, "M": room}
    counts = []
    for rows in range(n + 1):
        for keys in range(n + 1):
            tiled = {**numbers, "B_r": 2**rows, "B_c": 2**keys}
            if value(kernel_footprint(cut, kernel).amount, tiled) <= room:
                counts.append(value(traffic(cut).total.amount, tiled))
    if not counts:
        return
    grows = value(class_of(schedule).total, {**numbers, "N": 2**n})
    assert grows / 2 <= min(counts) <= 64 * grows

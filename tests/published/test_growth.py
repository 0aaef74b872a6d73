"""Readers' questions and theorems about how the traffic must grow, answered by the engine."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import pytest
import sympy as sp

from derive.attention import variant
from derive.exact import value
from derive.growth import growth, theta
from derive.schedule import Schedule
from derive.symbols import B_c, M, N_k, N_q, d
from derive.traffic import traffic
from rules.derivations import plan
from tests.outputs.command import derive

N = sp.Symbol("N", positive=True, integer=True)
TIED = {N_q: N, N_k: N}
SEED = {"N_q": 8192, "N_k": 8192, "d": 128, "M": 116_736}
"""One head, bf16, an H100's 228 KiB of shared memory as elements."""
MIB = 2**20


@cache
def schedule(name: str) -> Schedule:
    """mha, one head, d = d_v."""
    return plan(name).derive(variant("mha").graph("full", ())).schedule


def moved(name: str, **numbers: int) -> int | Fraction:
    """SM-side elements at the seed's sizes."""
    return value(traffic(schedule(name)).total.amount, {**SEED, **numbers})


@cache
def bound(*words: str) -> Any:
    """``derive bound --json``."""
    answer = derive("bound", *words, "--json")
    assert answer.code == 0, answer.err
    return answer.json


def test_case_40_d2_over_m_is_small_and_the_tile_is_not() -> None:
    """N^2 d^2/M is 18.0 MiB and 260 MiB move: 128 rows use a seventh of M; 912 rows would make 9 passes, 40 MiB."""
    grown = Fraction(8192**2 * 128**2, 116_736)
    assert Fraction(128**2, 116_736) == Fraction(16384, 116736)
    assert round(float(grown * 2 / MIB), 1) == 18.0
    assert moved("flash2", B_r=128, B_c=128) * 2 == 260 * MIB
    assert moved("flash2", B_r=912, B_c=1) * 2 == 40 * MIB
    assert round(float(moved("flash2", B_r=128, B_c=128) / grown), 1) == 14.5


def test_case_41_m_enters_once_and_not_at_all_unfused() -> None:
    """Why not N^2 d^2/M^2? https://github.com/Dao-AILab/flash-attention/issues/1260."""
    powers = [sp.degree(1 / m, M) for m in growth(schedule("flash1"), TIED).monomials if m.has(M)]
    assert powers == [1]
    assert not growth(schedule("naive"), TIED).total.has(M)


def test_case_42_the_reader_left_out_what_is_written() -> None:
    """8 N^2 d^2/M counts reads; with the writes it is 12: https://github.com/Dao-AILab/flash-attention/issues/1705."""
    published = plan("flash1").tiles
    lead = growth(schedule("flash1"), TIED, tiles=published).leads[-1]
    assert (lead.monomial, lead.published, lead.constant) == (N**2 * d**2 / M, 12, 6)
    tiles = {"B_c": 228, "B_r": 128}
    assert value(published[B_c], SEED) == tiles["B_c"]
    assert moved("flash1", **tiles) * 2 == Fraction(222_25, 100) * MIB


def test_case_43_rewriting_o_pays_while_8_d2_is_below_4_m() -> None:
    """O alone costs N^2 8 d^2/M at the paper's tiles: less than 4 N^2 while d^2/M < 1/2."""
    tensors = traffic(schedule("flash1")).by_tensor
    amount = sum((tensors[name].read + tensors[name].write for name in ("U_O", "O")), sp.Integer(0))
    (term,) = theta(amount.xreplace(TIED), ["B_c <= N", "B_r <= N"]).terms
    assert (term.monomial, term.constant) == (N**2 * d / B_c, 2)
    assert term.constant * term.monomial.subs(B_c, M / (4 * d)) == 8 * N**2 * d**2 / M  # type: ignore[operator]
    assert value(amount, {**SEED, "B_c": 228, "B_r": 128}) * 2 == 36 * 4 * MIB


def test_case_44_when_the_nd_of_block_sparse_may_go() -> None:
    """S N d >= M, so s >= 0.111 here: https://github.com/Dao-AILab/flash-attention/issues/1078."""
    s = sp.Symbol("s", positive=True)
    both = theta(N * d + N**2 * d**2 * s / M, ["s <= 1", "d <= M"]).terms
    assert {t.monomial: t.where for t in both} == {
        N * d: ((N * d * s, M),),
        N**2 * d**2 * s / M: ((M, N * d * s),),
    }
    assert round(float(Fraction(116_736, 8192 * 128)), 3) == 0.111
    assert round(Fraction(8192**2 * 128**2, 116_736) / 100) == 94_188


def test_case_49_m_is_in_elements_and_bytes_are_told_apart() -> None:
    """Read as elements, 228 KiB halves the class; a capacity typed as M is refused with the number of elements."""
    refused = derive("bound", "mha", "N=8192", "d=128", "M=228KiB")
    assert refused.code == 2
    assert "M is counted in elements, not bytes; 228KiB of bf16 is M=116736" in refused.err
    here = bound("mha", "N=8192", "d=128", "--on", "h100-sxm")
    assert here["parameters"]["M"] == 116_736
    assert "elements" in here["unit"]


def test_case_50_when_fused_is_not_less() -> None:
    """2 N^2 d/B_r against 4 N^2: equal at d = 2 B_r; https://github.com/Dao-AILab/flash-attention/issues/607."""
    pairs = {tuple(e["schedules"]): (e["left"], e["right"]) for e in bound("mha")["equal_where"]}
    assert pairs["flash2", "naive"] == ("d", "2*B_r")
    at = {"B_r": 128, "B_c": 128}
    inputs = 2 * 8192
    for head, ratio in ((256, 1), (512, 2)):
        fused = moved("flash2", d=head, **at) - inputs * head
        naive = moved("naive", d=head) - 2 * inputs * head
        assert fused == ratio * naive
    small = {"N_q": 128, "N_k": 128, **at}
    assert (moved("naive", **small) * 2, moved("flash2", **small) * 2) == (256 * 1024, 128 * 1024)


@pytest.mark.parametrize(
    ("name", "extra"), [("naive", ["N**2"]), ("flash1", ["N"]), ("flash2", []), ("row-resident", [])]
)
def test_theorem_1_memory_beside_inputs_and_output(name: str, extra: list[str]) -> None:
    """Dao et al. 2022, arXiv:2205.14135, theorem 1: O(N); flash2 keeps its statistics on chip; naive stores the scores."""
    assert bound("mha")["schedules"][name]["workspace"] == extra


def test_a_wider_sum_needs_room_of_its_own() -> None:
    """DQ is added up in the accumulator's type beside the narrower dQ that is left: N d, as the peak of memory counts it."""
    for name in ("flash1-backward", "flash2-backward"):
        assert bound("mha-backward")["schedules"][name]["workspace"] == ["N*d"]


def test_naive_is_less_than_flash1_between_two_lengths() -> None:
    """With 16 rows a tile, O, l and m cross at each visit: 4 N^2 + 4 N d < 5 N d + 4 N and more, from N = 17 to (d + 4)/4."""
    answer = derive("bound", "mha", "N=8192", "d=128", "Br=16", "--on", "h100-sxm", "--schedule", "flash1,naive")
    text = " ".join(answer.out.split())
    assert "flash1 up to N = 16, then by naive up to N = 32, then by flash1 from there on" in text
    at = {"B_c": 228, "B_r": 16}
    for length, naive_less in ((16, False), (17, True), (32, True), (33, False)):
        sizes = {"N_q": length, "N_k": length}
        assert (moved("naive", **sizes) < moved("flash1", **at, **sizes)) is naive_less

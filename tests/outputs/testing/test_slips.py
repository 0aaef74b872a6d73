"""Kernels that are wrong on purpose, each caught, shrunk and named; right ones pass."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from outputs.testing import ClosedForm, Disagreement, agree, agree_table, closed_form, shapes

B = 2  # bytes of a bf16 element


def trips(n: int, tile: int) -> int:
    """Tiles that cover n rows."""
    return -(-n // tile)


def flash2_bytes(N: int, d: int, dv: int, Br: int, k: int = 1, v: int = 1, width: int = B) -> int:
    """SM-side bytes of flash2, one head, written by hand: Q and O once, K and V once a row tile."""
    return width * (N * d + N * dv + k * trips(N, Br) * N * d + v * trips(N, Br) * N * dv)


def causal_pairs(n: int) -> int:
    """Pairs of a causal square."""
    return n * (n + 1) // 2


def tiled_pairs(n: int, rows: int, keys: int) -> int:
    """Pairs of the tiles that hold one, ragged ones whole."""
    return sum(
        rows * keys
        for i in range(trips(n, rows))
        for j in range(trips(n, keys))
        if j * keys <= min(n, (i + 1) * rows) - 1
    )


def int32(x: int) -> int:
    """What a 32-bit signed integer keeps of x."""
    return (x + 2**31) % 2**32 - 2**31


SM = closed_form("mha", "flash2", "sm")
FLOPS = closed_form("mha", "flash2", "flops", "mask=causal")
GQA = closed_form("gqa", "flash2", "compulsory")
SIZES = shapes("N", "d", "dv", "Br", N=300, d=40, dv=40, Br=40)
LONG = shapes("N", "d", "dv", "Br", N=2**17)
SQUARE = shapes("N", "d", "Br", "Bc", N=200, d=16, Br=20, Bc=20)
HEADS = shapes("N", "d", "h", "hk", N=64, d=16)

WRONG: dict[str, tuple[Callable[..., object], ClosedForm, object, str]] = {
    "re-reads K twice": (lambda N, d, dv, Br: flash2_bytes(N, d, dv, Br, k=2), SM, SIZES, "K is read twice as often as it is"),
    "forgets the diagonal": (
        lambda N, d, **_: 4 * d * (causal_pairs(N) - N), FLOPS, SQUARE, "the diagonal is forgotten: each query misses one pair",
    ),
    "counts MB as MiB": (
        lambda **s: Fraction(flash2_bytes(**s) * 2**20, 10**6), SM, SIZES,
        "MiB are read as MB, or divided by one and multiplied by the other: x 2^20/10^6",
    ),
    "int32 overflow": (lambda **s: int32(flash2_bytes(**s)), SM, LONG, "a 32-bit signed integer overflows"),
    "hk instead of h": (
        lambda N, d, hk, **_: B * N * d * (2 * hk + 2 * hk), GQA, HEADS, "h_k stands where h belongs",
    ),
    "mask ignored": (lambda N, d, **_: 4 * d * N * N, FLOPS, SQUARE, "the mask is ignored: dense pairs are counted"),
    "whole tiles counted as pairs": (
        lambda N, d, Br, Bc: 4 * d * tiled_pairs(N, Br, Bc), FLOPS, SQUARE, "whole tiles are counted as pairs",
    ),
    "V forgotten": (lambda N, d, dv, Br: flash2_bytes(N, d, dv, Br, v=0), SM, SIZES, "V is forgotten"),
    "O counted N x N": (
        lambda N, d, dv, Br: flash2_bytes(N, d, dv, Br) + B * N * (N - dv), SM, SIZES,
        "O is counted with N_k where it has d_v",
    ),
    "floor instead of ceil": (
        lambda N, d, dv, Br: B * (N * d + N * dv + (N // Br) * N * (d + dv)), SM, SIZES,
        "a division rounds down (floor) where it must round up (ceil)",
    ),
    "bytes as elements": (lambda **s: flash2_bytes(**s, width=1), SM, SIZES, "elements are reported as bytes"),
    "half instead of exact": (
        lambda N, d, **_: 2 * d * N * N, FLOPS, SQUARE, "half of dense stands for the exact count",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_slip_is_caught_and_named(name: str) -> None:
    """The right diagnosis is among those given, and where sizes tell slips apart it is the only one."""
    measured, form, over, says = WRONG[name]
    with pytest.raises(Disagreement) as caught:
        agree(measured, form, over=over)  # type: ignore[arg-type]
    assert says in caught.value.explained, str(caught.value)
    assert len(caught.value.explained) <= 2, str(caught.value)


@pytest.mark.parametrize(
    ("measured", "form", "over"),
    [
        (flash2_bytes, SM, SIZES),
        (flash2_bytes, SM, LONG),
        (lambda N, d, **_: 4 * d * causal_pairs(N), FLOPS, SQUARE),
        (
            lambda N, d, Br, Bc: 4 * d * tiled_pairs(N, Br, Bc),
            closed_form("mha", "flash2", "executed", "mask=causal"),
            SQUARE,
        ),
        (lambda N, d, h, hk: B * N * d * (2 * h + 2 * hk), GQA, HEADS),
    ],
)
def test_a_right_counter_passes(measured: Callable[..., int], form: ClosedForm, over: object) -> None:
    """Counters written by hand from the loop nest, equal at every size drawn."""
    assert agree(measured, form, over=over).tried >= 50


def test_the_smallest_counterexample_is_small_and_powers_are_told() -> None:
    """O as N x N: shrunk to a few rows; the measured count grows with N faster than the derived one."""
    measured, form, over, _ = WRONG["O counted N x N"]
    with pytest.raises(Disagreement, match=r"grows with N\^\(") as caught:
        agree(measured, form, over=over)  # type: ignore[arg-type]
    assert sum(caught.value.sizes.values()) <= 6
    grows, should = caught.value.powers["N"]
    assert grows.power > 0
    assert should.half >= 0


def test_a_slip_that_nobody_knows_is_said_to_be_unknown() -> None:
    """Off by seven bytes: no diagnosis is made up."""
    with pytest.raises(Disagreement, match="no known slip gives these numbers"):
        agree(lambda **s: flash2_bytes(**s) + 7, SM, over=SIZES)


def test_a_tolerance_passes_what_lies_within_it() -> None:
    """Two in a hundred more: passes at 5 %, fails at 1 %."""
    agree(lambda **s: flash2_bytes(**s) * 1.02, SM, over=SIZES, tolerance=0.05)
    with pytest.raises(Disagreement):
        agree(lambda **s: flash2_bytes(**s) * 1.02, SM, over=SIZES, tolerance=0.01)


def test_a_table_is_compared_row_by_row() -> None:
    """Rows of a profiler's export: the smallest wrong row, the powers over all rows, and the slip."""
    rows = [{"N": n, "d": d, "dv": d + 1, "Br": 16} for n in (64, 100, 128, 300) for d in (8, 16, 24)]
    good = [{**r, "bytes": flash2_bytes(**r)} for r in rows]
    assert agree_table(good, SM, column="bytes").tried == 12
    bad = [{**r, "bytes": flash2_bytes(**r, v=0)} for r in rows]
    with pytest.raises(Disagreement, match="diagnosis: V is forgotten") as caught:
        agree_table(bad, SM, column="bytes")
    assert caught.value.sizes == {"N": 64, "d": 8, "dv": 9, "Br": 16}
    assert {"N", "d"} & set(caught.value.powers)

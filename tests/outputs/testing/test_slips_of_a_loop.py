"""Slips made in a plain loop over tiles, as a person writes one: each named, and alone where the sizes allow it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from outputs.testing import ClosedForm, Disagreement, Slip, agree, closed_form, shapes

Keeps = Callable[[int, int], bool]


def causal(q: int, k: int) -> bool:
    """A query sees its own key and all before it."""
    return k <= q


def loop(
    N: int,
    d: int,
    dv: int,
    Br: int,
    Bc: int,
    h: int = 1,
    B: int = 1,
    *,
    keeps: Keeps = lambda q, k: True,  # noqa: ARG005
    again: int = 0,
    spilled: int = 0,
    row: int = 0,
    skips_ragged: bool = False,
) -> int:
    """Bytes of a bf16 kernel: a CTA a row tile loads Q, streams the tiles of K and V that *keeps* leaves, and stores O.

    *again* bytes an element of Q are loaded again for each further key tile, *spilled* bytes an element of O leave the chip at
    each key tile, *row* bytes a query are stored beside O, and a row tile that is not full may be dropped.
    """
    total = 0
    for first in range(0, N, Br):
        rows = range(first, min(first + Br, N))
        if skips_ragged and len(rows) < Br:
            continue
        tiles = [range(k, min(k + Bc, N)) for k in range(0, N, Bc)]
        met = [keys for keys in tiles if any(keeps(q, k) for q in rows for k in keys)]
        total += len(rows) * (2 * d + 2 * dv + row) + sum(2 * len(keys) * (d + dv) for keys in met)
        total += len(rows) * (again * d * max(0, len(met) - 1) + spilled * dv * len(met))
    return total * h * B


SM = closed_form("mha", "flash2", "sm")
CAUSAL = closed_form("mha", "flash2", "sm", "mask=causal")
WINDOW = closed_form("mha", "flash2", "sm", "mask=window")
GQA = closed_form("gqa", "flash2", "sm")
DECODE = closed_form("decode", "flash2", "sm")
BACKWARD = closed_form("mha-backward", "flash2-backward", "flops")
TILES = shapes("N", "d", "dv", "Br", "Bc", N=24, d=5, dv=5, Br=7, Bc=7)
PLAIN = shapes("N", "d", "dv", "Br")
LONG = shapes("N", "d", "dv", "Br", N=2**18)
HEADS = shapes("N", "d", "dv", "Br", "Bc", "h", "hk", "B", N=12, d=5, dv=5, Br=7, Bc=7, h=4, hk=2, B=3)


def bytes_of(N: int, d: int, dv: int, Br: int) -> int:
    """The same without a loop."""
    return 2 * N * (d + dv) * (1 + -(-N // Br))


def only(sizes: dict[str, int], *more: str) -> dict[str, int]:
    """Lengths, widths and tiles, and *more*."""
    return {key: size for key, size in sizes.items() if key in ("N", "d", "dv", "Br", "Bc", *more)}


WRONG: dict[str, tuple[Callable[..., Any], ClosedForm, Any, str, int]] = {
    "Q loaded again for each key tile": (
        lambda **s: loop(**s, again=2), SM, TILES, "Q is read again for each tile of B_c along k", 1,
    ),
    "O spilled as fp32 at each key tile": (
        lambda **s: loop(**s, spilled=4), SM, TILES, 
        "O is written as fp32 for each tile of B_c along k, and once at the end", 1,
    ),
    "the log-sum-exp stored": (
        lambda **s: loop(**s, row=4), SM, TILES, "one number a row of O, such as the log-sum-exp, moved as fp32 too", 3,
    ),
    "the ragged row tile dropped": (
        lambda **s: loop(**s, skips_ragged=True), SM, TILES, "a ragged query tile, the last, is dropped", 1,
    ),
    "own key forgotten": (
        lambda **s: loop(**s, keeps=lambda q, k: k < q), CAUSAL, TILES,
        "each query misses its last key, which on the diagonal is its own", 1,
    ),
    "one key too many": (
        lambda **s: loop(**s, keeps=lambda q, k: k <= q + 1), CAUSAL, TILES, "each query sees one key too many at the end", 1,
    ),
    "row tiles stop at their first query": (
        lambda N, d, dv, Br, Bc: sum(
            2 * (min(Br, N - q) + q // Bc * Bc) * (d + dv) for q in range(0, N, Br)
        ), CAUSAL, TILES, "each row tile stops at its first query, not its last: at whole tiles below it", 1,
    ),
    "half of dense, by tile": (
        lambda N, d, dv, Br, **_: N * (d + dv) * (2 + -(-N // Br)), CAUSAL, TILES,
        "half of what K and V would be without a mask stands for the tiles that are met", 1,
    ),
    "a window one too long": (
        lambda W, **s: loop(**s, keeps=lambda q, k: q - W <= k <= q), WINDOW,
        shapes("N", "d", "dv", "Br", "Bc", "W", N=24, d=5, dv=5, Br=7, Bc=7, W=20),
        "each query sees one key too many at the start, as where a window of W keys does not count its own", 1,
    ),
    "the batch forgotten": (lambda **s: loop(**only(s, "h")), GQA, HEADS, "B is left out, as if it were 1: batch", 1),
    "one head counted": (lambda **s: loop(**only(s, "B")), GQA, HEADS, "h is left out, as if it were 1: query heads", 1),
    "a key/value head's keys once": (
        lambda N, d, Br, h, hk: 4 * N * d * (h + hk * -(-N // Br)), GQA, shapes("N", "d", "Br", "h", "hk"),
        "K and V are counted once a key/value head, not once a query head", 1,
    ),
    "prefill's queries in decode": (
        lambda Nk, d, h, **_: 8 * h * Nk * d, DECODE, shapes("Nk", "d", "h", "hk"),
        "Q and O are counted with N_k where they have 1", 1,
    ),
    "fp8 keys and values": (
        lambda Nk, d, dv, h: h * (2 + Nk) * (d + dv), DECODE, shapes("Nk", "d", "dv", "h"), "K and V are counted 1 B wide", 1,
    ),
    "queries and keys change places": (
        lambda N, d, dv, Bc, **_: bytes_of(N, d, dv, Bc), SM, TILES, "B_c stands where B_r belongs", 1,
    ),
    "one CTA": (lambda **s: bytes_of(**s) / -(-s["N"] // s["Br"]), SM, PLAIN, "one CTA is counted, not all of them", 1),
    "every tensor once": (
        lambda N, d, dv, **_: 4 * N * (d + dv), SM, PLAIN, "K and V are read once, and not again by each tile", 1,
    ),
    "reads alone": (lambda N, d, dv, Br: bytes_of(N, d, dv, Br) - 2 * N * dv, SM, PLAIN, "writes are left out", 2),
    "an fp32 output": (lambda N, d, dv, Br: bytes_of(N, d, dv, Br) + 2 * N * dv, SM, PLAIN, "O is counted 4 B wide", 2),
    "the scores in HBM": (
        lambda N, d, dv, Br: bytes_of(N, d, dv, Br) + 4 * N * N, SM, PLAIN,
        "S or X or E leaves the chip: written and read back", 2,
    ),
    "ragged tiles whole": (
        lambda N, d, dv, Br: 2 * (-(-N // Br) * Br + N * -(-N // Br)) * (d + dv), SM, PLAIN,
        "a ragged query tile is counted as B_r rows", 1,
    ),
    "floor + 1": (
        lambda N, d, dv, Br: 2 * N * (d + dv) * (2 + N // Br), SM, PLAIN,
        "floor + 1 stands where ceil belongs: a tile too many where it divides", 1,
    ),
    "a division that is not rounded": (
        lambda N, d, dv, Br: 2 * N * (d + dv) * (1 + N / Br), SM, PLAIN,
        "a division is not rounded: a ragged tile counts as a part of one", 1,
    ),
    "MiB reported": (lambda **s: bytes_of(**s) / 2**20, SM, PLAIN, "MiB are reported, not bytes", 1),
    "GB reported": (lambda **s: bytes_of(**s) / 1e9, SM, PLAIN, "GB are reported, not bytes", 1),
    "bits reported": (lambda **s: bytes_of(**s) * 8, SM, PLAIN, "bits are reported, not bytes", 1),
    "32 bits of elements": (
        lambda **s: 2 * ctypes.c_int32(bytes_of(**s) // 2).value, SM, LONG,
        "a 32-bit signed integer overflows while it counts elements", 2,
    ),
    "a 32-bit float": (
        lambda **s: np.float32(bytes_of(**s)), SM, LONG, "a 32-bit float keeps 24 bits of the count", 1,
    ),
    "another schedule": (
        lambda Nk, d, dv, h, hk: 2 * (d + dv) * (h + hk * Nk * -(-(h // hk) // 128)), DECODE,
        shapes("Nk", "d", "dv", "h", "hk", h=999, hk=3),
        "the numbers are those of the schedule flash2-packed, not of flash2", 2,
    ),
    "dense pairs": (
        lambda N, d, dv: 2 * N * N * (d + dv), closed_form("mha", "flash2", "flops", "mask=causal"),
        shapes("N", "d", "dv"), "the mask is ignored: dense pairs are counted", 1,
    ),
    "scores not made again": (
        lambda N, d, dv: N * N * (4 * d + 4 * dv), BACKWARD, shapes("N", "d", "dv"), "the product S is left out", 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_slip_in_a_loop_is_named(name: str) -> None:
    """By its own sentence, among no more than as many as give the same numbers whatever the sizes."""
    measured, form, over, says, most = WRONG[name]
    with pytest.raises(Disagreement, match="the smallest case found") as caught:
        agree(measured, form, over=over, examples=40)
    assert says in (caught.value.explained or ()), str(caught.value)
    assert len(caught.value.explained or ()) <= most, str(caught.value)


@pytest.mark.parametrize(
    ("form", "over", "keeps"),
    [
        (SM, TILES, lambda q, k: True),  # noqa: ARG005
        (CAUSAL, TILES, causal),
        (GQA, HEADS, lambda q, k: True),  # noqa: ARG005
    ],
)
def test_the_loop_itself_is_right(form: ClosedForm, over: Any, keeps: Keeps) -> None:
    """Without a slip it agrees: it is the slips that are caught."""
    assert agree(lambda hk=1, **s: loop(**s, keeps=keeps), form, over=over, examples=40).tried >= 20  # noqa: ARG005


def test_slips_that_no_size_tells_apart_name_the_size_that_would() -> None:
    """With dv left as d, Q and O have one size; with dv drawn too, O alone is named."""
    with pytest.raises(Disagreement, match="let dv vary too, to tell them apart") as caught:
        agree(lambda N, d, Br: bytes_of(N, d, d, Br) + 2 * N * d, SM, over=shapes("N", "d", "Br"))
    assert {"Q is counted 4 B wide", "O is counted 4 B wide"} <= set(caught.value.explained or ())


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (lambda **s: bytes_of(**s) / 132, "at every point it is 1/132 of what is derived"),
        (lambda **s: bytes_of(**s) + 7, "at every point it is 7 more than derived"),
        (lambda **s: bytes_of(**s) - 3, "at every point it is 3 less than derived"),
        (lambda **_: 9, "it is 9 at every point, whatever the sizes"),
    ],
)
def test_an_unknown_slip_says_what_all_points_share(measured: Callable[..., Any], says: str) -> None:
    """One ratio or one difference, which is no diagnosis and is a lead."""
    with pytest.raises(Disagreement, match=f"no known slip gives these numbers; {says}"):
        agree(measured, SM, over=PLAIN)


def test_nothing_is_measured_outside_the_domain() -> None:
    """A simulator that refuses sizes beyond those drawn is never asked for them, for its powers neither."""

    def careful(N: int, d: int, dv: int, Br: int) -> int:
        assert 30 <= N <= 50, "outside the domain"
        return bytes_of(N, d, dv, Br) + 2

    over = st.fixed_dictionaries(
        {"N": st.integers(30, 50), "d": st.integers(1, 9), "dv": st.integers(1, 9), "Br": st.integers(1, 9)}
    )
    with pytest.raises(Disagreement, match=r"measured grows with N\^\(") as caught:
        agree(careful, SM, over=over)
    assert caught.value.sizes["N"] == 30
    assert caught.value.tried == caught.value.wrong == 100


def test_powers_tell_measured_from_derived() -> None:
    """Every tensor once grows with N; what is derived grows with N^2 / B_r, as far as the tiles drawn show it."""
    with pytest.raises(Disagreement, match="derived  grows with") as caught:
        agree(lambda N, d, **_: 8 * N * d, SM, over=shapes("N", "d", "Br"))
    measured, derived = caught.value.powers["N"]
    assert str(measured) == "1.00 +- 0.00"
    assert derived.power - derived.half > 1.4
    assert caught.value.powers["Br"][1].power < -0.4


def test_sizes_that_vary_together_leave_the_others_their_powers() -> None:
    """With dv = d at every point, d has the power of both, and dv none."""
    over = shapes("N", "d", "Br").map(lambda s: {**s, "dv": s["d"]})
    with pytest.raises(Disagreement) as caught:
        agree(lambda **s: 3 * s["N"] * s["d"], SM, over=over)
    assert set(caught.value.powers) == {"N", "d", "Br"}


def test_a_noisy_count_is_diagnosed_within_its_tolerance() -> None:
    """A simulator that is off by up to one in a hundred, and reads K twice."""

    def noisy(N: int, d: int, dv: int, Br: int) -> float:
        return (bytes_of(N, d, dv, Br) + 2 * N * d * -(-N // Br)) * (1 + (N % 7 - 3) / 300)

    with pytest.raises(Disagreement) as caught:
        agree(noisy, SM, over=PLAIN, tolerance=0.02)
    assert "K is read twice as often as it is" in (caught.value.explained or ())


def test_what_is_right_explains_nothing() -> None:
    """A little beyond the tolerance: a slip that changes nothing, such as a width that is the right one, is no diagnosis."""
    nothing = Slip("nothing", lambda values: values["N"])
    within = Fraction(2, 100)
    assert not nothing.explains([({"N": 100}, Fraction(10201, 100))], within)
    assert not nothing.explains([({"N": 100}, Fraction(9799, 100))], within)
    assert nothing.explains([({"N": 100}, 102), ({"N": 100}, 98)], within)


@pytest.mark.parametrize(
    ("measured", "form", "over", "says"),
    [
        (
            lambda **s: loop(**s, again=2, row=4), SM, TILES,
            "two slips: Q is read again for each tile of B_c along k; one number a row of O, such as the log-sum-exp, moved as "
            "fp32 too",
        ),
        (
            lambda N, d, dv, Br: bytes_of(N, d, dv, Br) - 2 * N * d + 4 * N, SM, PLAIN,
            "two slips: Q is forgotten; one number a row of O, such as the log-sum-exp, moved as fp32 too",
        ),
    ],
)  # fmt: skip
def test_two_slips_at_once_are_told_as_two(
    measured: Callable[..., Any], form: ClosedForm, over: Any, says: str
) -> None:
    """Where no single one gives the numbers."""
    with pytest.raises(Disagreement, match="diagnosis: two slips: ") as caught:
        agree(measured, form, over=over)
    assert says in (caught.value.explained or ()), str(caught.value)


def test_without_a_diagnosis_what_is_derived_is_told_by_tensor() -> None:
    """At the smallest sizes, where it can be checked by hand."""
    with pytest.raises(Disagreement, match="derived there: reads Q 2, K 2, V 2; writes O 2"):
        agree(lambda **s: bytes_of(**s) ** 2, SM, over=PLAIN)
    with pytest.raises(Disagreement) as caught:
        agree(lambda N, d, dv: N * N * (d + dv) ** 3, BACKWARD, over=shapes("N", "d", "dv"))
    assert "derived there" not in str(caught.value)

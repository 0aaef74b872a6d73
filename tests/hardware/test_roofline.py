"""Rates, times, bounds and crossovers, against arithmetic done by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import sympy as sp

from derive.errors import BadValueError, DomainError, UnboundError, UnknownNameError
from hardware import load, names
from hardware.roofline import PIPES, Work, rate, ridge, roofline

H100 = load("h100-sxm")
N = sp.Symbol("N", integer=True, positive=True)
B = sp.Symbol("B", integer=True, positive=True)


def microseconds(seconds: Any) -> float:
    """Exact seconds, as a number a person compares."""
    return float(seconds) * 1e6


def test_the_exponential_rate_is_units_times_throughput_times_clock() -> None:
    """132 SMs x 16 per clock x 1.83 GHz, and it says so."""
    exp = rate(H100, "exp", "bf16")
    assert exp is not None
    assert exp.value == 132 * 16 * 1_830_000_000 == 3_864_960_000_000
    assert exp.how == "132 SMs x 16 ops/clk/SM x tensor_peak_clock 1830 MHz"
    assert exp.kind == "derived"


def test_a_matrix_flop_is_256_times_as_cheap_as_an_exponential() -> None:
    """4096 FLOP against 16 exponentials per SM and clock: 256, once both hold at the same clock."""
    mma, exp = rate(H100, "mma", "bf16"), rate(H100, "exp", "bf16")
    assert mma is not None
    assert exp is not None
    assert float(mma.value / exp.value) == pytest.approx(256, rel=1e-4)


def test_a_vector_operation_is_two_flop() -> None:
    """Half of 66.9 TFLOP/s, and the word derived."""
    vector = rate(H100, "vector", "bf16")
    assert vector is not None
    assert (vector.value, vector.unit, vector.kind) == (Fraction(3345, 100) * 10**12, "op/s", "derived")


def test_an_l2_rate_is_the_published_one_or_the_measured_one_or_unknown() -> None:
    """H100 SXM has a paper's figure, H200 a measurement, B200 neither."""
    found = {name: rate(load(name), "l2", "bf16") for name in ("h100", "h200", "b200")}
    assert {name: l2 and l2.kind for name, l2 in found.items()} == {"h100": "paper", "h200": "measured", "b200": None}


def test_a_matrix_engine_s_fp32_is_not_a_vector_rate() -> None:
    """Trainium2 and Gaudi 3 print the fp32 rate of their matrix engines; halving it would be a guess."""
    for name in ("trainium2", "gaudi3", "tpu-v5p"):
        assert rate(load(name), "vector", "bf16") is None


def test_an_engine_with_its_own_clock_is_timed_by_it() -> None:
    """Trainium2 evaluates exponentials at 1.2 GHz while its matrix engines run at 2.4."""
    exp = rate(load("trainium2"), "exp", "bf16")
    assert exp is not None
    assert exp.value == 8 * 128 * 1_200_000_000


def test_an_unknown_throughput_gives_no_rate() -> None:
    """No exponential rate of an AMD part was found, and no clock of the H100 NVL."""
    assert rate(load("mi300x"), "exp", "bf16") is None
    assert rate(load("h100-nvl"), "exp", "bf16") is None


@pytest.mark.parametrize("name", names())
def test_every_machine_has_matrix_and_dram_times(name: str) -> None:
    """Whatever else is unknown, the classic roofline of two roofs can be drawn."""
    machine = load(name)
    dtype = "bf16" if "bf16" in machine.dtypes else "fp16"
    times = roofline(Work(mma=1, dram=1), machine, dtype).times
    assert times["mma"] is not None
    assert times["dram"] is not None


def test_times_are_work_over_rate() -> None:
    """Numbers worked by hand: 2^35 FLOP, 2^26 exponentials, 8 MiB and 520 MiB on an H100."""
    times = roofline(Work(mma=34359738368, exp=67108864, dram=8388608), H100, "bf16").times
    assert microseconds(times["mma"]) == pytest.approx(34.73, abs=0.005)
    assert microseconds(times["exp"]) == pytest.approx(17.36, abs=0.005)
    assert microseconds(times["dram"]) == pytest.approx(2.504, abs=0.0005)
    assert times["vector"] is None
    assert times["dram"] == sp.Rational(8388608 * 100, 335 * 10**12)
    assert microseconds(roofline(Work(dram=545259520), H100, "bf16").seconds({})) == pytest.approx(162.8, abs=0.05)


def test_the_slowest_pipe_bounds() -> None:
    """Attention over a long sequence is bound by its matrices, one row of it by its bytes."""
    work = Work(mma=4 * N * B * 128, exp=N * B, dram=2 * 2 * 128 * (N + B))
    roofs = roofline(work, H100, "bf16")
    assert roofs.bound({"N": 65536, "B": 65536}) == "mma"
    assert roofs.bound({"N": 65536, "B": 1}) == "dram"
    assert roofs.seconds({"N": 65536, "B": 1}) == Fraction(512 * 65537 * 100, 335 * 10**12)


def test_a_tie_goes_to_the_first_pipe() -> None:
    """The answer does not depend on chance."""
    ridge_work = Work(mma=sp.Rational(*ridge(H100, "bf16").as_integer_ratio()) * N, dram=N)
    assert roofline(ridge_work, H100, "bf16").bound({"N": 7}) == "mma"


def test_a_pipe_of_unknown_rate_is_left_out() -> None:
    """Its time is None, not zero and not infinite, and the others still answer."""
    roofs = roofline(Work(mma=N, exp=10**30), load("mi300x"), "bf16")
    assert roofs.times["exp"] is None
    assert roofs.bound({"N": 1}) == "mma"


def test_two_times_cross_where_intensity_is_the_ridge() -> None:
    """2 N^3 FLOP over 6 N^2 bytes: N/3 FLOP/B meets 295.34 at N = 886.03."""
    crossings = roofline(Work(mma=2 * N**3, dram=6 * N**2), H100, "bf16").crossover(N, "mma", "dram")
    assert len(crossings) == 1
    assert Fraction(int(crossings[0].p), int(crossings[0].q)) == 3 * ridge(H100, "bf16")


def test_a_crossover_may_keep_other_symbols() -> None:
    """The answer in one symbol is a formula in the rest."""
    (crossing,) = roofline(Work(mma=4 * N * B, dram=8 * B**2), H100, "bf16").crossover(N, "mma", "dram")
    assert crossing.free_symbols == {B}
    assert float(crossing.subs(B, 1)) == pytest.approx(2 * 295.343, rel=1e-5)


def test_times_that_never_meet_have_no_crossover() -> None:
    """At 4 FLOP/B whatever N, an H100 waits for its DRAM always."""
    assert roofline(Work(mma=4 * N, dram=N), H100, "bf16").crossover(N, "mma", "dram") == ()


@pytest.mark.parametrize(
    ("work", "pipe", "message"),
    [
        (Work(mma=N), "dram", "dram has no time, as no work is stated for it"),
        (Work(mma=N, l2=N), "l2", "l2 has no time, as its rate is unknown"),
    ],
)
def test_a_crossover_needs_both_times(work: Work, pipe: Any, message: str) -> None:
    """It says which of the two is missing, and why."""
    with pytest.raises(UnknownNameError, match=message):
        roofline(work, load("b200"), "bf16").crossover(N, "mma", pipe)


def test_a_crossover_without_closed_form_is_refused() -> None:
    """A tile count has jumps that no formula solves."""
    work = Work(mma=N**2, dram=sp.ceiling(N / 128) * 1000 + N)
    with pytest.raises(DomainError, match="mma and dram have no closed crossover in N"):
        roofline(work, H100, "bf16").crossover(N, "mma", "dram")


def test_a_type_the_machine_lacks_is_refused() -> None:
    """An A100 has no fp8, whatever a table derives from its int8 rate."""
    for ask in (lambda: ridge(load("a100"), "fp8"), lambda: roofline(Work(mma=1), load("a100"), "fp8")):
        with pytest.raises(UnknownNameError, match=r"a100-sxm-80gb has no fp8 rate .* it has fp64, fp32, tf32, bf16"):
            ask()


def test_a_symbol_without_value_is_named() -> None:
    """An open formula has no time yet."""
    with pytest.raises(UnboundError, match="N has no value yet"):
        roofline(Work(mma=N), H100, "bf16").seconds({})


def test_no_work_has_no_time() -> None:
    """Nothing stated is not zero seconds."""
    with pytest.raises(UnboundError, match="no pipe has a known time"):
        roofline(Work(), H100, "bf16").bound({})


@pytest.mark.parametrize("amount", ["N**2", 1.5, True, [1]])
def test_work_that_is_not_exact_is_refused(amount: Any) -> None:
    """Text above all: SymPy would run it."""
    with pytest.raises(BadValueError, match=r"work on mma is .*: give an int or a SymPy expression"):
        Work(mma=amount)


def test_negative_work_is_refused() -> None:
    """A difference taken the wrong way round shows itself."""
    with pytest.raises(BadValueError, match="work on dram is -1: work is not negative"):
        Work(dram=-1)


def test_a_crossover_in_text_is_refused() -> None:
    """A name is not a symbol."""
    with pytest.raises(BadValueError, match="times cross in a SymPy symbol, not in 'N'"):
        roofline(Work(mma=N, dram=N), H100, "bf16").crossover("N", "mma", "dram")


def test_an_unknown_pipe_is_refused() -> None:
    """The five are listed."""
    with pytest.raises(UnknownNameError, match=f"no pipe 'tensor'; there are {', '.join(PIPES)}"):
        rate(H100, "tensor", "bf16")  # type: ignore[arg-type]

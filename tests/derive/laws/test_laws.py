"""Laws against exact values and against the walker: proved ones give the count, checked ones hold where nobody looked."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import lcm
from random import Random

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.choice import cases
from derive.exact import value
from derive.extremes import up
from derive.flops import Pipe, executed, flops
from derive.laws import Evidence, Law, Outcome, Regime, Roles, laws, looked_for, proved, told_apart
from derive.laws.homogeneous import degree
from derive.laws.numbers import POINTS, Numbers
from derive.replay import walk
from derive.schedule import Schedule
from derive.substitution import put
from derive.symbols import C_L2, B_c, B_r, C, N, N_k, N_q, W, b, d, h, h_k
from derive.traffic import compulsory, traffic
from rules.derivations import plan

ALIKE = {N_q: N, N_k: N}


@cache
def schedule(name: str, variant_name: str = "mha", mask: str = "full") -> Schedule:
    """A schedule with its heads left open where they are grouped."""
    found = variant(variant_name)
    return plan(name).derive(found.graph(mask, {s for pair in found.divides for s in pair})).schedule


def roles(cut: Schedule, variant_name: str = "mha") -> Roles:
    """The roles in it, both lengths as N."""
    return Roles.of(cut, ALIKE, variant(variant_name).divides)


def tied(amount: sp.Expr) -> sp.Expr:
    """*amount* with both lengths as N."""
    return put(amount, ALIKE)


def read(cut: Schedule, *names: str) -> sp.Expr:
    """What crosses into and out of the SMs of some tensors."""
    moves = traffic(cut).by_tensor
    return tied(sp.Add(*(moves[n].read + moves[n].write for n in names)))


def checked(amount: sp.Expr, symbol: sp.Symbol, known: Roles, *, where: tuple[sp.Basic, ...] = ()) -> Law | None:
    """The law that is found at numbers; ``None`` where there is none."""
    found = looked_for(amount, symbol, known, where=where)
    return found if isinstance(found, Law) else None


def law(amount: sp.Expr, symbol: sp.Symbol, cut: Schedule, variant_name: str = "mha") -> Law:
    """The one proved law."""
    found = proved(amount, symbol, roles(cut, variant_name))
    assert found is not None
    return found


def test_doubling_n_multiplies_the_score_traffic_of_naive_by_4() -> None:
    """Exactly, always: S and P alone cross memory N by N."""
    cut = schedule("naive")
    found = law(read(cut, "S", "P"), N, cut)
    assert (found.exponents, found.factor(), found.regime, found.evidence) == ((2,), 4, Regime(), Evidence.PROVED)


def test_doubling_the_row_tile_halves_the_rereads_where_both_divide() -> None:
    """K and V cross N/B_r times; a tile that does not divide is outside the regime, and the law says so."""
    cut = schedule("flash2")
    found = law(read(cut, "K", "V"), B_r, cut)
    assert found.factor() == sp.Rational(1, 2)
    assert found.regime.whole == (N / B_r,)
    at = {"N": 96, "d": 8, "B_r": 16}
    assert found.scales(at) == (Outcome.HOLDS, Fraction(1, 2))
    assert found.scales({**at, "B_r": 32}) == (Outcome.OUTSIDE, None)  # 64 does not divide 96
    assert found.scales({**at, "N": 97}) == (Outcome.OUTSIDE, None)


def test_a_law_that_is_wrong_fails_inside_its_regime() -> None:
    """The same count, said to fall with the square: refused with the factor that was found."""
    cut = schedule("flash2")
    right = law(read(cut, "K", "V"), B_r, cut)
    wrong = Law(right.amount, B_r, (Fraction(-2),), right.regime, Evidence.PROVED)
    assert wrong.scales({"N": 96, "d": 8, "B_r": 16}) == (Outcome.FAILS, Fraction(1, 2))


def test_flop_do_not_depend_on_the_number_of_kv_heads_and_their_bytes_are_linear_in_it() -> None:
    """Grouped heads: the work is the query heads', what must be read of K and V that of the key/value heads."""
    cut = schedule("flash2", "gqa")
    assert law(tied(flops(cut.graph)[Pipe.MMA].amount), h_k, cut, "gqa").is_independent
    moves = compulsory(cut.graph).by_tensor
    kv = law(tied(moves["K"].read + moves["V"].read), h_k, cut, "gqa")
    assert (kv.exponents, kv.factor()) == ((1,), 2)
    assert kv.regime.whole == (h / h_k,)


def test_a_windows_work_is_linear_in_n_by_proof_and_its_traffic_by_check() -> None:
    """At a fixed W that fits: pairs W N - W (W - 1)/2 exactly; tiles have no closed form, and their counts are affine in N."""
    cut = schedule("flash2", mask="window")
    pairs = law(tied(flops(cut.graph)[Pipe.SFU].amount), N, cut)
    assert pairs.exponents == (0, 1)
    assert sp.expand(pairs.coefficients[Fraction(1)] - W) == 0
    assert pairs.regime.where == (sp.Le(W, N, evaluate=False),)
    found = checked(tied(traffic(cut).total.amount), N, roles(cut))
    assert found is not None
    assert (found.exponents, found.evidence) == ((0, 1), Evidence.CHECKED)
    assert found.factor() is None  # coefficients were seen as numbers alone


@settings(max_examples=12, deadline=None)
@given(rows=st.integers(1, 4), keys=st.integers(1, 4), window=st.integers(1, 7), start=st.integers(1, 3))
def test_the_walker_sees_a_windows_traffic_grow_by_equal_steps(rows: int, keys: int, window: int, start: int) -> None:
    """Elements loaded at lengths that differ by multiples of both tiles: second differences are zero."""
    cut, step = schedule("flash2", mask="window"), sp.ilcm(rows, keys)
    first = step * (start + -(-window // step))
    counts = []
    for n in (first, first + step, first + 2 * step):
        at = {"N_q": n, "N_k": n, "d": 2, "B_r": rows, "B_c": keys, "W": window}
        counts.append(sum(sum(moved) for moved in walk(cut, at).moves.values()))
    assert counts[0] - 2 * counts[1] + counts[2] == 0


def test_causal_tiles_have_a_closed_form_where_the_tiles_divide() -> None:
    """flash2 reads N^2/(2 B_r) + N/2 keys a head, twice d elements each: proved by summing over the row tiles."""
    cut = schedule("flash2", mask="causal")
    found = law(read(cut, "K", "V"), N, cut)
    assert set(found.regime.whole) == {N / B_r, B_r / B_c}
    assert sp.expand(sum(c * N**e for e, c in found.coefficients.items()) - 2 * d * (N**2 / (2 * B_r) + N / 2)) == 0


COUNTS = {
    "sm": lambda cut: tied(traffic(cut).total.amount),
    "executed": lambda cut: tied(executed(cut)[Pipe.MMA].amount),
    "useful": lambda cut: tied(flops(cut.graph)[Pipe.MMA].amount),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("name", "variant_name"), [("naive", "mha"), ("flash1", "mha"), ("flash2", "gqa")])
@pytest.mark.parametrize("mask", ["full", "causal", "window", "chunk", "prefix"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_proved_law_is_the_count_wherever_its_regime_holds(
    count: str, name: str, variant_name: str, mask: str, data: st.DataObject
) -> None:
    """Sums of powers equal exact values at random numbers of the regime; the factor of doubling is the quotient of two."""
    cut = schedule(name, variant_name, mask)
    amount = COUNTS[count](cut)
    tile, parts, many = (data.draw(st.integers(1, 4)) for _ in range(3))
    at = {"N": tile * parts * many * 2, "d": data.draw(st.integers(1, 5)), "B_r": tile * parts, "B_c": tile, "b": 2}
    at |= {"h_k": 2, "h": 6, "W": data.draw(st.integers(1, 9)), "C_k": data.draw(st.sampled_from((1, tile))), "N_p": 3}
    symbol = data.draw(st.sampled_from([N, d, B_r, B_c, h, h_k]))
    for found in laws(amount, symbol, roles(cut, variant_name)):
        if found.regime.broken(at) is None:
            assert found.at(at) == value(amount, at)
            assert found.scales(at)[0] is not Outcome.FAILS


@settings(max_examples=60)
@given(
    n=st.integers(1, 40),
    width=st.integers(1, 5),
    tile=st.integers(1, 9),
    cache=st.integers(1, 400),
    by=st.integers(2, 5),
)
def test_a_degree_is_what_scaling_shows(n: int, width: int, tile: int, cache: int, by: int) -> None:
    """Extremes, sums and cases whose conditions scaling keeps; one that it changes has no degree."""
    i = sp.Symbol("i", nonnegative=True, integer=True)
    amounts = [
        sp.Max(d * N, 3 * d * B_r, evaluate=False),
        sp.Sum(d * sp.Min(N, (i + 1) * B_r), (i, 0, up(N / B_r) - 1)),
        cases((d**2 * N, sp.Le(d * N, 7 * d)), (d**2, sp.true)),
    ]
    at = {"N": n, "d": width, "B_r": tile, "C_L2": cache}
    for amount, expected in zip(amounts, (1, 1, 2), strict=True):
        assert degree(amount, d) == expected
        assert value(amount, {**at, "d": width * by}) == by**expected * value(amount, at)
    assert degree(cases((d, sp.Le(d * N, C_L2)), (2 * d, sp.true)), d) is None
    assert degree(d + 1, d) is None
    assert degree(up(d / B_r), d) is None


def test_cases_are_told_apart_with_what_they_stand_under() -> None:
    """The second case holds where the first fails; of too many, the two ends are left."""
    amount = cases((N, sp.Le(N, C_L2)), (N * C, sp.Le(d, C_L2)), (N**2, sp.true))
    assert [one for one, _ in told_apart(amount, 4)] == [N, N * C, N**2]
    assert told_apart(amount, 4)[2][1] == (sp.Gt(N, C_L2), sp.Gt(d, C_L2))
    assert [one for one, _ in told_apart(amount, 2)] == [N, N**2]


def test_where_there_is_no_sum_of_powers_no_law_is_made_up() -> None:
    """A rounding that nothing says is whole, and a remainder: neither proved nor checked."""
    assert checked(sp.ceiling(N / 3) * N, N, Roles((N,))) is None
    assert checked(sp.Mod(N, 5) + N, N, Roles((N,))) is None
    assert laws(sp.Mod(N, 5) + N, N) == []


def test_several_powers_bound_the_factor_and_a_negative_one_does_not() -> None:
    """N^2 + N d grows between 2 and 4 fold; N^2 - N by more than 4."""
    both = proved(N**2 * b + N * d * b, N)
    assert both is not None
    assert both.bounds() == (2, 4)
    assert 2 < value(both.factor(), {"N": 8, "d": 2, "b": 2}) < 4
    flop = proved(4 * N**2 * d + N * d, N)
    assert flop is not None
    assert flop.bounds() == (2, 4)
    half = proved(N**2 * b - N * b, N)  # neither coefficient is a whole number
    assert half is not None
    assert half.bounds() is None
    less = proved(N**2 - N, N)
    assert less is not None
    assert less.bounds() is None
    assert value(less.factor(), {"N": 8}) > 4


def test_the_last_exponent_leads() -> None:
    """Of three powers the greatest, of one that one."""
    three = tuple(map(Fraction, (0, 1, 2)))
    assert Law(N**2 + N + 1, N, three, Regime(), Evidence.PROVED).exponent == 2
    assert Law(N, N, three[1:2], Regime(), Evidence.PROVED).exponent == 1


def test_a_sum_whose_ends_grow_has_no_degree_of_its_own() -> None:
    """Neither has a sum over two indices; one with ends that stay has that of its terms."""
    i, j = sp.symbols("i j", integer=True)
    assert degree(sp.Sum(N * i, (i, 0, d)), N) == 1
    assert degree(sp.Sum(N * i, (i, 0, N)), N) is None
    assert degree(sp.Sum(N * i * j, (i, 0, d), (j, 0, d)), N) is None


def test_a_count_that_falls_is_checked_at_lengths_that_there_are() -> None:
    """1/N has values from one token on, and a power of its own."""
    found = checked(1 / N + N, N, Roles((N,)))
    assert found is not None
    assert found.exponents == (-1, 1)


def test_a_share_of_heads_decides_what_hangs_on_it() -> None:
    """With h_k dividing h, h ceil(N/B_r)/h_k is at least 1: one law, not one a case."""
    amount = N * h + N * h_k * sp.Min(1, h * sp.ceiling(N / B_r) / h_k, evaluate=False)
    found = proved(amount, N, Roles((N,), divides=((h_k, h),)))
    assert found is not None
    assert found.exponents == (1,)
    assert proved(amount, N, Roles((N,))) is None


def test_a_cube_is_beyond_the_powers_that_are_looked_for() -> None:
    """x^-1 to x^2, as the counts of attention have; six values tell a cube apart."""
    assert checked(N**3, N, Roles((N,))) is None
    found = checked(N**2 + N, N, Roles((N,)))
    assert found is not None
    assert found.exponents == (1, 2)


def test_only_a_sum_over_all_row_tiles_is_closed() -> None:
    """One that begins at the second tile has one term less, and is left to numbers."""
    i = sp.Symbol("i", integer=True)
    every, later = (sp.Sum(i * d, (i, first, up(N / B_r) - 1)) for first in (0, 1))
    assert proved(every, N, Roles((N,))) is not None
    assert proved(later, N, Roles((N,))) is None


def test_hundreds_of_cases_are_no_laws() -> None:
    """Under a mask of three sizes each extreme may be any of its members: the one where they fit is checked instead."""
    cut = schedule("flash2", "mha", "global-local")
    amount = tied(compulsory(cut.graph).total.amount)
    known = roles(cut)
    assert laws(amount, N, known) == []
    seen = checked(amount, N, known)
    assert seen is not None
    assert (seen.exponents, seen.evidence) == ((Fraction(1),), Evidence.CHECKED)


def test_flash1_under_a_causal_mask_has_a_law_in_every_tile() -> None:
    """What it writes and reads again of O falls as N^2/B_c: seen where B_c divides B_r, of two row tiles."""
    cut = schedule("flash1", mask="causal")
    amount, condition = next(
        (one, where)
        for one, where in told_apart(read(cut, "Q", "m", "l", "U_O", "O"), 4)
        if sp.Lt(B_r, N, evaluate=False) in where
    )
    for symbol, powers in ((N, (0, 1, 2)), (B_r, (0, 1, 2)), (B_c, (-1,))):
        found = checked(amount, symbol, roles(cut), where=condition)
        assert found is not None
        assert found.exponents == powers


MASKS = ["causal", "window", "sinks", "chunk", "prefix", "dilated"]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("variant_name", ["cross", "gqa"])
def test_numbers_lie_in_the_regime_that_is_stated(variant_name: str, mask: str) -> None:
    """Of every drawing, whatever tiles divide: a law is looked for where it is said to hold."""
    cut = schedule("flash2", variant_name, mask)
    alike = {} if variant_name == "cross" else ALIKE
    known = Roles.of(cut, alike, variant(variant_name).divides)
    sizes = {s for s, _ in known.sizes}
    everything = frozenset({*known.lengths, *known.tiles, *sizes, C, d, h, h_k})
    for symbol in everything:
        for nested in ((), ((B_c, B_r),), ((B_r, B_c),)):
            for cut_too, roomy, trial in product((False, True), (False, True), range(6)):
                drawn = Numbers(known, symbol, everything, frozenset({B_r, B_c, C}), (), cut_too, roomy, nested)
                points = drawn.along(trial)
                assert [drawn.regime.broken(at) for at in points] == [None] * POINTS
                values = [at[symbol.name] for at in points]
                assert values == sorted(set(values))


@pytest.mark.parametrize("mask", MASKS)
def test_a_checked_law_holds_at_other_numbers_of_its_regime(mask: str) -> None:
    """Values along the symbol, at tiles, sizes and lengths that were not looked at, lie on a sum of the same powers."""
    cut = schedule("flash2", mask=mask)
    known, random, seen = roles(cut), Random(mask), 0
    amount = tied(traffic(cut).total.amount)
    for symbol in (N, B_r, B_c, *(s for s, _ in known.sizes)):
        found = proved(amount, symbol, known) or checked(amount, symbol, known)
        assert found is not None
        for _ in range(40):
            at = {"d": 2, "b": 2, "B_r": random.randint(1, 9), "B_c": random.randint(1, 9)}
            at |= {s.name: random.randint(1, 9) for s, _ in known.sizes}
            at["N"] = lcm(at["B_r"], at["B_c"]) * random.choice((1, 2, 3, 12, 24))
            line = [{**at, symbol.name: at[symbol.name] * n} for n in range(1, 25)]
            line = [point for point in line if found.regime.broken(point) is None][: len(found.exponents) + 2]
            if len(line) > len(found.exponents):
                seen += 1
                rows = [[sp.Integer(p[symbol.name]) ** sp.Rational(e) for e in found.exponents] for p in line]
                with_values = [[*row, value(amount, p)] for row, p in zip(rows, line, strict=True)]
                assert sp.Matrix(with_values).rank() == sp.Matrix(rows).rank()
    assert seen > 20

from __future__ import annotations

from random import Random

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.exact import value
from derive.residency import dram
from derive.symbols import C_L2
from derive.traffic import traffic
from outputs.notation import cases
from outputs.parts import MOST_CONDITIONS, Parts, conditions
from tests.strategies import PAIRS, derivation

SYMBOLS = sp.symbols("w x y z", positive=True, integer=True)


def choices(depth: int = 2) -> st.SearchStrategy[sp.Expr]:
    """Sums and products of sizes and of amounts in cases, cases within cases among them."""
    plain = st.sampled_from((*SYMBOLS, sp.Integer(0), sp.Integer(3)))
    conditions_ = st.tuples(*2 * (st.sampled_from(SYMBOLS),)).map(lambda s: sp.Le(s[0], 2 * s[1], evaluate=False))

    def larger(inner: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
        chosen = st.tuples(inner, conditions_, inner, conditions_, inner).map(
            lambda c: sp.Piecewise((c[0], c[1]), (c[2], c[3]), (c[4], True), evaluate=False)
        )
        rounded = st.tuples(inner, inner).map(lambda c: sp.ceiling(sp.Add(c[0], c[1]) / 3, evaluate=False))
        both = st.tuples(inner, inner)
        return st.one_of(chosen, rounded, both.map(lambda c: sp.Add(*c)), both.map(lambda c: sp.Mul(*c)))

    return st.recursive(plain, larger, max_leaves=6 * depth)


@settings(max_examples=60)
@given(amount=choices(), numbers=st.tuples(*4 * (st.integers(1, 9),)))
def test_parts_put_back_have_the_value_of_the_whole(amount: sp.Expr, numbers: tuple[int, ...]) -> None:
    """In any case, at any numbers; and what stands in names has few cases."""
    at = {s.name: n for s, n in zip(SYMBOLS, numbers, strict=True)}
    parts = Parts()
    named = parts.of(amount)
    assert value(parts.written_out(named), at) == value(amount, at)
    assert len(conditions(named)) <= MOST_CONDITIONS
    assert all(len(conditions(part)) <= len(part.args) for _, part in parts.since(0))


@pytest.mark.parametrize(("variant", "schedule"), PAIRS[::4])
def test_every_count_of_the_catalogue_is_cut_alike(variant: str, schedule: str) -> None:
    """SM-side and HBM bytes in few cases each, of one value with the whole whatever fits the cache."""
    cut, drawn = derivation(variant, schedule, "full").schedule, Random(variant + schedule)
    for moves in (traffic(cut), dram(cut)):
        amount, parts = moves.total.amount, Parts()
        named = parts.of(amount)
        assert all(len(cases(form)) <= 4 for form in (named, *(part for _, part in parts.since(0))))
        for room in (1, 10**3, 10**5, 10**9):
            at = {s.name: drawn.randint(1, 12) for s in sorted(amount.free_symbols, key=str)} | {C_L2.name: room}
            assert value(parts.written_out(named), at) == value(amount, at)


def test_a_sum_that_is_repeated_is_named_once() -> None:
    """What is added to a sum belongs to it; a sum that stands once stays where it is."""
    w, x, y, i = *SYMBOLS[:3], sp.Symbol("i", integer=True)
    visits = y + sp.Sum(sp.ceiling((x + i) / 3), (i, 0, w - 1))
    once = sp.Sum(sp.floor((x + i) / 5), (i, 0, w - 1))
    parts = Parts()
    named = parts.shared(x * visits + y * visits + once)
    ((name, part),) = parts.since(0)
    assert part == visits
    assert named == x * name + y * name + once
    assert parts.shared(w * visits) == w * name  # a name that is there is used again
    assert Parts().shared(w * visits) == w * visits


@settings(max_examples=40)
@given(numbers=st.tuples(*3 * (st.integers(1, 9),)), seed=st.integers(0, 99))
def test_shared_sums_put_back_have_the_value_of_the_whole(numbers: tuple[int, ...], seed: int) -> None:
    """Random sums of random multiples of few sums over tiles."""
    w, x, y = SYMBOLS[:3]
    i, random = sp.Symbol("i", integer=True), Random(seed)
    sums = [sp.Sum(sp.ceiling((n * x + i) / (n + 1)), (i, 0, w - 1)) + random.choice((0, y)) for n in range(1, 4)]
    terms = [random.choice((w, x, y)) * (random.choice(sums) - random.choice((0, x))) for _ in range(6)]
    parts, amount = Parts(), sp.Add(*terms)
    at = {s.name: n for s, n in zip(SYMBOLS, numbers, strict=False)}
    assert value(parts.written_out(parts.shared(amount)), at) == value(amount, at)


def test_cases_of_one_amount_are_one_case() -> None:
    """Where what does not fit moves as much as what does, there is nothing to tell apart."""
    w, x, y = SYMBOLS[:3]
    told = [sp.Le(s, C_L2, evaluate=False) for s in (w, x, y)]
    same = [
        sp.Piecewise((2 * y + 2 * s, c), (2 * (y + s), True), evaluate=False)
        for s, c in zip((w, x), told, strict=False)
    ]
    other = sp.Piecewise((w, told[2]), (x, True), evaluate=False)
    parts = Parts()
    parts.of(sp.Add(*same, other))
    assert [part for _, part in parts.since(0)] == [other]

"""Parts replaced: only minima, maxima and roundings are simplified, and the values are SymPy's."""

from __future__ import annotations

import sympy as sp

from derive.substitution import factored, free, multiplied_out, outermost, put

A, B, K, J = sp.symbols("a b i j", integer=True, positive=True)


def test_a_condition_that_becomes_plain_stays_written() -> None:
    """Neither a relation nor the cases that hang on it are decided: that would ask SymPy at every replacement."""
    assert put(sp.Le(A, B), {B: A}) == sp.Le(A, A, evaluate=False)
    kept = put(sp.Piecewise((A, sp.Lt(A, B)), (B, True)), {A: sp.Integer(1), B: sp.Integer(2)})
    assert isinstance(kept, sp.Piecewise)
    assert kept.args[0] == (1, sp.Lt(1, 2, evaluate=False))


def test_extremes_and_roundings_of_what_is_put_in_are_simplified() -> None:
    """min(a, b) with b = a + 1 is a; the floor of a whole number is the number."""
    assert put(sp.Min(A, B, evaluate=False), {B: A + 1}) == A
    assert put(sp.Max(A, B, evaluate=False), {B: A + 1}) == A + 1
    assert put(sp.floor(A / B), {B: sp.Integer(1)}) == A
    assert put(sp.ceiling(A / B), {B: sp.Integer(1)}) == A
    assert put(A + B, {sp.Symbol("c"): B}) == A + B


def test_a_sum_of_sums_gives_its_outermost_index_and_keeps_the_others() -> None:
    """The free symbols are those that neither binds."""
    total = sp.Sum(A * K * J, (K, 0, J), (J, 1, B))
    assert outermost(total) == (sp.Sum(A * K * J, (K, 0, J)), J, 1, B)
    assert outermost(sp.Sum(K, (K, 0, B))) == (K, K, 0, B)
    assert free(total) == {A, B}


def test_products_are_multiplied_out_around_minima() -> None:
    """What a minimum or a rounding is of stays as it is written; a sum of two terms is two sums."""
    low, up = sp.Min(A * (B + 1), K, evaluate=False), sp.ceiling(A * (B + 1) / K)
    found = multiplied_out((A + low) * (B + up))
    assert found == A * B + A * up + low * B + low * up
    total = sp.Sum(J * (A + sp.Min(J, B, evaluate=False)), (J, 0, K))
    apart = multiplied_out(A * total)
    assert apart == A * (sp.Sum(J * A, (J, 0, K)) + sp.Sum(J * sp.Min(J, B, evaluate=False), (J, 0, K))).expand(
        deep=False
    )
    numbers = {A: 3, B: 4, K: 5}
    assert apart.subs(numbers).doit() == (A * total).subs(numbers).doit()


def test_a_quotient_of_minima_is_cancelled_like_one_of_symbols() -> None:
    """The minimum counts as a symbol of its own."""
    low = sp.Min(A, B, evaluate=False)
    assert factored((low**2 + low * K) / (low * K)) == (low + K) / K

"""Parts replaced: only minima, maxima and roundings are simplified, and the values are SymPy's."""

from __future__ import annotations

import sympy as sp

from derive.substitution import free, outermost, put

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

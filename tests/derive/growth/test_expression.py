"""The class of an expression of one's own: leading terms, constants, and what has no class."""

from __future__ import annotations

import pytest
import sympy as sp

from derive.cost import Cost, Unit
from derive.errors import DomainError
from derive.growth import theta
from derive.symbols import M, N_k, d

N = sp.Symbol("N", positive=True, integer=True)
s = sp.Symbol("s", positive=True)


def leading(expression: sp.Expr, *where: str) -> dict[sp.Expr, sp.Expr | None]:
    """Monomials with their constants."""
    return {t.monomial: t.constant for t in theta(expression, where).terms}


def test_sizes_grow_and_do_not_shrink() -> None:
    """SymPy's order symbol expands at zero and calls N + N^2 an O(N); here it is N^2."""
    assert sp.Order(N + N**2) == sp.Order(N)
    assert leading(N + N**2) == {N**2: 1}


def test_a_regime_decides_what_leads() -> None:
    """Case 44 (https://github.com/Dao-AILab/flash-attention/issues/1078): N d may be dropped only while s N d >= M."""
    count = N * d + 4 * N**2 * d**2 * s / M
    assert leading(count, "s <= 1") == {N * d: 1, N**2 * d**2 * s / M: 4}
    assert leading(count, "s <= 1", "M <= s*N*d") == {N**2 * d**2 * s / M: 4}
    assert leading(count, "s <= 1", "s*N*d <= M") == {N * d: 1}
    (first, second) = theta(count, ["s <= 1"]).terms
    assert first.where == ((N * d * s, M),)
    assert second.where == ((M, N * d * s),)


def test_what_is_dropped_says_why() -> None:
    """N d <= N^2 d^2/M, since M <= N d."""
    (dropped,) = theta(N * d + N**2 * d**2 / M, ["d <= M <= N*d"]).dropped
    assert (dropped.monomial, dict(dropped.by)) == (N * d, {N**2 * d**2 / M: 1})
    assert [condition for condition, _ in dropped.because] == [(M, N * d)]


def test_roundings_leave_the_class_and_its_constant() -> None:
    """ceil(N/B) is N/B where B <= N, and 1 where not; a class speaks of one regime."""
    B = sp.Symbol("B", positive=True, integer=True)
    assert leading(3 * d * sp.ceiling(N / B), "B <= N") == {N * d / B: 3}
    with pytest.raises(DomainError, match="the bounds on its roundings do not meet"):
        theta(3 * d * sp.ceiling(N / B))


def test_a_cost_keeps_its_unit() -> None:
    """A class of bytes is no number of bytes, and says what it is of."""
    found = theta(Cost(2 * N_k * d, Unit.BYTE))
    assert (found.unit, found.total) == ("bytes", N_k * d)


def test_a_maximum_has_the_class_of_its_sum() -> None:
    """Between the mean and the sum of its members, so its constant stays open."""
    assert leading(5 * sp.Max(N, d)) == {N: None, d: None}
    assert leading(5 * sp.Max(N, d), "d <= N") == {N: 5}


@pytest.mark.parametrize(
    ("expression", "where", "says"),
    [
        (N + sp.Symbol("x"), (), "nothing is known of x: declare it a positive integer, or state 1 <= x or x <= 1"),
        (sp.log(N), (), r"log\(N\) is no sum of monomials: log has no exponents"),
        (N - d, ("d <= N",), "may be zero in this regime"),
        (N - d, (), "a negative term is not outweighed"),
        (N * d, ("N^2 <= d", "d <= N"), r"the regime N\*\*2 <= d and d <= N contradicts itself at d <= N"),
        (2**N, (), "is no sum of monomials"),
        (N * d, ("Q <= N",), "there is no symbol 'Q'"),
    ],
)
def test_what_has_no_class_says_which_and_why(expression: sp.Expr, where: tuple[str, ...], says: str) -> None:
    """One sentence each."""
    with pytest.raises(Exception, match=says) as refusal:
        theta(expression, where)
    assert type(refusal.value).__module__ == "derive.errors"

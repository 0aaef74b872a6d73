"""What ``derive laws`` prints holds where it says so: at numbers drawn in another way than those that laws are found at.

The checked laws of a few answers with every run; ``LAWS=20`` looks at all laws of every variant under every mask, each on so
many lines: an hour and more. ``python -m tests.laws`` does the same and says what it found.
"""

from __future__ import annotations

import os
from fractions import Fraction

import pytest
import sympy as sp

from derive.attention import names
from derive.errors import DeriveError
from derive.laws import Evidence, Law, Regime, Roles
from derive.symbols import B_c, B_r, N, W, W_l, W_r
from tests.laws.regimes import MASKS, asked, holds_on, look

LINES = int(os.environ.get("LAWS", "8"))
FEW = (("mha", "prefix"), ("linear-backward", "window"), ("decode", "global-local"))
EVERY = tuple((name, mask) for mask in MASKS for name in names())


@pytest.mark.parametrize(("name", "mask"), EVERY if "LAWS" in os.environ else FEW)
def test_every_law_holds_at_numbers_of_its_regime(name: str, mask: str) -> None:
    """Proved ones are their sum of powers, checked ones lie on one; most regimes are met."""
    try:
        found = asked(name, mask)
    except DeriveError as error:
        pytest.skip(str(error))
    for one in found:
        laws = {
            (f.law.amount, f.symbol, f.law.regime, f.law.exponents): f.law for f in one.findings if _is_looked_at(f.law)
        }
        looked = [look(law, one.roles, LINES, f"{name} {mask} {n}") for n, law in enumerate(laws.values())]
        assert [str(x) for x in looked if x.broken is not None] == []
        assert sum(x.lines > 0 for x in looked) >= len(looked) * 3 / 4


def _is_looked_at(law: Law | None) -> bool:
    return law is not None and ("LAWS" in os.environ or law.evidence is Evidence.CHECKED)


def test_a_law_of_too_few_powers_or_too_wide_a_regime_is_found_out() -> None:
    """Tiles of keys up to the last row of each row tile: affine in B_c where B_r divides it, and no such thing elsewhere."""
    i = sp.Symbol("i", integer=True, nonnegative=True)
    amount = sp.Sum(sp.Min(N, B_c * sp.ceiling((i + 1) * B_r / B_c)), (i, 0, sp.ceiling(N / B_r) - 1))
    roles = Roles((N,), {B_r: frozenset({N}), B_c: frozenset({N})})
    right = Regime((N / B_r, N / B_c, B_c / B_r))

    def said(regime: Regime, *powers: int) -> Law:
        return Law(amount, B_c, tuple(map(Fraction, powers)), regime, Evidence.CHECKED)

    assert look(said(right, 0, 1), roles, 20, "").broken is None
    for wrong in (said(right, 0), said(right, 1), said(Regime((N / B_r, N / B_c)), 0, 1)):
        assert look(wrong, roles, 20, "").broken is not None


def test_a_sum_of_powers_is_told_from_what_is_none() -> None:
    """By elimination: the values of 2 x + 3 lie on powers 0 and 1, not on either, and no cube on powers 0 to 2."""
    points = [{"W": n} for n in (1, 2, 3, 5, 8)]

    def on(amount: sp.Expr, *powers: int) -> bool:
        return holds_on(Law(amount, W, tuple(map(Fraction, powers)), Regime(), Evidence.CHECKED), points)

    assert on(2 * W + 3, 0, 1)
    assert not on(2 * W + 3, 0)
    assert not on(2 * W + 3, 1)
    assert on(4 / W - W**2, -1, 2)
    assert not on(W**3, 0, 1, 2)


def test_sizes_before_and_behind_a_query_leave_room_for_its_own_key() -> None:
    """A query of a decode step under global tokens sees N_g + W_l + 1 + W_r keys, where there are as many."""
    (one, *_) = asked("decode", "global-local")
    assert sp.expand(one.roles.span - sp.Add(1, *(s for s, _ in one.roles.sizes))) == 0
    assert {W_l, W_r} <= {s for s, _ in one.roles.sizes}

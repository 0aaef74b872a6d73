"""Laws of closed forms, obeyed by counters and by tables, inside their regime."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import strategies as st

from derive.errors import BadValueError
from derive.laws import Evidence, Law, Regime, proved
from derive.symbols import B_r, N, b, d
from outputs.testing import (
    ClosedForm,
    Disagreement,
    NothingTested,
    closed_form,
    law_of,
    obey,
    obey_table,
    shapes,
)

SM = closed_form("mha", "flash2", "sm")


def sm_bytes(N: int, d: int, Br: int) -> int:
    """SM-side bytes of flash2."""
    return 4 * N * d * (1 + -(-N // Br))


def rereads(N: int, d: int, B_r: int, b: int) -> int:
    """Bytes of K and V that flash2 brings in."""
    return 2 * N * d * b * -(-N // B_r)


HALVES = proved(2 * N**2 * d * b / B_r, B_r)


def test_a_law_is_tested_inside_its_regime_and_says_when_that_is_nowhere() -> None:
    """Where the tile divides, doubling it halves; where it never does, nothing was tested, and nothing failed."""
    assert HALVES is not None
    law = Law(HALVES.amount, B_r, HALVES.exponents, Regime((N / B_r,)), Evidence.PROVED, HALVES.coefficients)
    over = st.fixed_dictionaries(
        {"N": st.sampled_from((64, 96)), "d": st.integers(1, 9), "B_r": st.sampled_from((8, 16, 48)), "b": st.just(2)}
    )
    found = obey(rereads, law, over=over)
    assert 0 < found.outside < found.tried
    odd = st.fixed_dictionaries({"N": st.just(97), "d": st.just(2), "B_r": st.integers(2, 40), "b": st.just(2)})
    with pytest.warns(
        NothingTested, match="the law of B_r: outside the law's regime at all 100 points: nothing was tested"
    ):
        assert obey(rereads, law, over=odd).says.startswith("outside the law's regime at all")
    with pytest.raises(AssertionError, match="factor as B_r is multiplied by 2"):
        obey(lambda **s: rereads(**{**s, "B_r": 8}), law, over=over)


def test_a_law_of_a_closed_form_is_obeyed_by_keys_as_a_person_types_them() -> None:
    """N is both lengths; where B_r divides N, and only there; a counter that rounds down breaks it nowhere else."""
    law = law_of(SM, "N")
    whole = st.fixed_dictionaries({"N": st.integers(1, 9), "d": st.integers(1, 9), "Br": st.integers(1, 9)}).map(
        lambda s: {**s, "N": s["N"] * s["Br"]}
    )
    assert obey(sm_bytes, law, over=whole).outside == 0
    assert 0 < obey(sm_bytes, law, over=shapes("N", "d", "Br", N=30, Br=9)).outside < 100
    with pytest.raises(
        Disagreement, match="factor as N is multiplied by 2: measured 2, derived 3 at N=1, d=1, Br=1"
    ) as caught:
        obey(lambda N, d, Br: 4 * N * d * Br, law, over=whole)
    assert "diagnosis" not in str(caught.value)
    measured, derived = caught.value.powers["N"]
    assert str(measured) == "1.00 +- 0.00"
    assert 1 < derived.power < 2


def test_a_law_speaks_of_one_size_beside_those_that_stay() -> None:
    """Twice the query heads on as many key/value heads, where these divide them; a window where it fits the keys."""
    heads_ = law_of(closed_form("gqa", "flash2", "compulsory"), "h", "hk")
    assert heads_.regime.whole
    over = st.fixed_dictionaries(
        {"N": st.integers(1, 9), "d": st.integers(1, 9), "h": st.integers(1, 8), "hk": st.just(2)}
    )
    found = obey(lambda N, d, h, hk: 4 * N * d * (h + hk), heads_, over=over)
    assert 0 < found.outside < found.tried
    assert law_of(closed_form("gqa", "flash2", "compulsory"), "h").exponents == (1,)  # K and V grow with them
    window = law_of(closed_form("mha", "flash2", "flops", "mask=window"), "N")
    assert [str(condition) for condition in window.regime.where] == ["W <= N"]


@pytest.mark.parametrize(
    ("form", "key", "says"),
    [
        (closed_form("mha-backward", "flash2-backward", "sm"), "N", "no one law of .* in N is proved for all sizes"),
        (SM, "Bc", "does not depend on Bc; it depends on"),
        (SM, "nonsense", "does not depend on nonsense"),
    ],
)
def test_a_law_that_there_is_not_is_refused(form: ClosedForm, key: str, says: str) -> None:
    """With what the form depends on."""
    with pytest.raises(BadValueError, match=says):
        law_of(form, key)


def test_a_law_needs_its_symbol_among_the_sizes() -> None:
    """Drawn under another name, the sizes that are there are told."""
    with pytest.raises(BadValueError, match="the law is of B_r, and the sizes are N, d; draw B_r too"):
        obey(lambda **_: 1, law_of(SM, "Br"), over=shapes("N", "d"))


def test_a_law_is_tested_on_the_rows_of_a_table() -> None:
    """Pairs of rows that differ in the symbol alone; those outside the regime are counted, and none at all is refused."""
    law = law_of(SM, "Br")
    rows = [{"N": n, "d": 4, "Br": r, "ns": 7, "bytes": sm_bytes(n, 4, r)} for n in (96, 100) for r in (8, 16, 24, 32)]
    found = obey_table(rows, law, column="bytes", sizes=("N", "d", "Br"))
    assert (found.tried, found.outside) == (8, 4)  # 8-16, 8-24, 8-32, 16-32, of which 96 is divided
    wrong = [{**row, "bytes": 5} for row in rows]
    with pytest.raises(
        Disagreement, match="factor as B_r is multiplied by 2: measured 1, derived 7/13 at N=96, d=4, Br=8"
    ):
        obey_table(wrong, law, column="bytes", sizes=("N", "d", "Br"))
    with pytest.raises(BadValueError, match="no two rows of the table differ in B_r alone"):
        obey_table(rows[:1], law, column="bytes")
    with pytest.warns(NothingTested, match="nothing was tested"):
        obey_table(rows[4:], law, column="bytes", sizes=("N", "d", "Br"))


def test_a_law_without_a_factor_is_refused() -> None:
    """A class leaves its constant open."""
    law = Law(N**2, N, (Fraction(2),), Regime(), Evidence.PROVED, exact=False)
    with pytest.raises(BadValueError, match="leaves the factor open"):
        obey(lambda N: N, law, over=shapes("N"))

"""Arrays of terms at the edges: each bound before it is passed, each rule by a plain loop, what has no array refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
import sympy as sp

from derive.exact import value
from derive.pieces import NoFastSumError
from derive.steps import steps
from derive.symbols import B_c, B_r, N_k, N_q, d, dummy
from derive.term_arrays import MOST_ELEMENTS, Arrays

I, J, K = dummy("i"), dummy("j"), dummy("k")  # noqa: E741
AT = {"N_q": 7, "N_k": 5, "B_r": 3, "B_c": 4, "d": 2}
HALF = sp.Rational(1, 2)


def total(summand: Any, first: int, last: int, numbers: dict[str, int] | None = None) -> Fraction:
    """The sum over i from *first* to *last* in arrays."""
    return Arrays(lambda part: value(part, AT if numbers is None else numbers), {}).total(summand, I, first, last)


def cases(*branches: tuple[Any, Any]) -> Any:
    """A case distinction as it is written."""
    return sp.Piecewise(*branches, evaluate=False)


RULES: tuple[tuple[Any, Callable[[int], Any]], ...] = (
    ((I + 1) ** 3, lambda i: (i + 1) ** 3),
    (cases((I / 3, sp.Lt(I, 2, evaluate=False)), (I / 5, sp.Lt(I, 4, evaluate=False)), (HALF, True)),
     lambda i: Fraction(i, 3) if i < 2 else Fraction(i, 5) if i < 4 else Fraction(1, 2)),
    (cases((1, sp.Gt(I, 3, evaluate=False)), (9, sp.Ge(I, 3, evaluate=False)), (99, sp.Le(I, 0, evaluate=False)), (999, True)),
     lambda i: 1 if i > 3 else 9 if i >= 3 else 99 if i <= 0 else 999),
    (cases((1, sp.Lt(I / 3, I / 2 - HALF, evaluate=False)), (0, True)), lambda i: int(Fraction(i, 3) < Fraction(i - 1, 2))),
    (cases((1, sp.Le(I / 3, I / 2 - HALF, evaluate=False)), (0, True)), lambda i: int(Fraction(i, 3) <= Fraction(i - 1, 2))),
    (sp.Max(I / 3, I / 2 - HALF, evaluate=False), lambda i: max(Fraction(i, 3), Fraction(i - 1, 2))),
    (sp.Min(I / 3, I / 2 - HALF, N_q - I, evaluate=False), lambda i: min(Fraction(i, 3), Fraction(i - 1, 2), 7 - i)),
    (sp.floor(I / 3 + HALF) * sp.ceiling(I / 4 - HALF), lambda i: floor(Fraction(2 * i + 3, 6)) * ceil(Fraction(i - 2, 4))),
    (steps(I, [0, 2, 5], [4, 1, 9]), lambda i: 9 if i >= 5 else 1 if i >= 2 else 4),
    (steps(I / 2, [0, 2, 5], [-4, -1, 3]), lambda i: 3 if i >= 10 else -1 if i >= 4 else -4),
    (sp.Sum(I + J, (J, I + 5, I + 1)), lambda i: 0),  # noqa: ARG005
    (sp.Sum(J, (J, 3, I)), lambda i: sum(range(3, i + 1))),
    (sp.Sum(J * K + I, (K, 0, J), (J, 1, I)), lambda i: sum(j * k + i for j in range(1, i + 1) for k in range(j + 1))),
    (sp.Sum(sp.floor(J / B_c) + I, (J, 0, I)) + sp.Sum(sp.floor(J / B_c) * I, (J, 2, 9)),
     lambda i: sum(j // 4 + i for j in range(i + 1)) + sum(j // 4 * i for j in range(2, 10))),
)  # fmt: skip


@pytest.mark.parametrize(("summand", "by_hand"), RULES, ids=lambda x: str(x)[:40] if isinstance(x, sp.Basic) else "")
def test_each_rule_is_what_a_loop_in_plain_python_finds(summand: Any, by_hand: Callable[[int], Any]) -> None:
    """Term by term, so that no error in one makes up for one in another."""
    for i in range(-3, 12):
        assert total(summand, i, i) == by_hand(i), i
    assert total(summand, -3, 11) == sum(by_hand(i) for i in range(-3, 12))


BIG, SMALL = 2**40, 2**20
BOUNDS: tuple[tuple[Any, dict[str, int], int, int], ...] = (
    (N_q * (I + B_r), {"N_q": -BIG, "B_r": BIG}, 0, 3),  # a negative number is as far from 0
    (N_q + I / 3, {"N_q": 2**61}, 3, 3),  # over a common denominator it is three times as large
    (N_q * I, {"N_q": 2**42}, -SMALL, 0),  # the first index is the largest
    (N_q * I, {"N_q": 2**42}, 0, SMALL),  # the last one is
    (N_q + I, {"N_q": 2**43}, 0, SMALL - 1),  # each term fits and their sum does not
    ((I + N_q) + (2 * I + N_k), {"N_q": 2**61, "N_k": 2**61}, 0, 0),
    (sp.floor((I - N_q) / 2) * N_k, {"N_q": 2**32 - 1, "N_k": 2**31}, 0, 0),  # rounded away from 0
    (sp.ceiling((N_q - I) / 2) * N_k, {"N_q": 2**32 - 1, "N_k": 2**31}, 0, 0),
    ((I + N_q) * (I + N_k), {"N_q": 2**31, "N_k": 2**31}, 0, 1),
    (cases((I, sp.Lt(I, 0, evaluate=False)), (N_q + I, True)) * N_k, {"N_q": 2**31, "N_k": 2**31}, 0, 1),
    (cases((N_q + I, sp.Ge(I, 0, evaluate=False)), (I, True)) * N_k, {"N_q": 2**31, "N_k": 2**31}, 0, 1),
    (sp.Max(I, N_q, evaluate=False) * N_k, {"N_q": 2**31, "N_k": 2**31}, 0, 1),
    (sp.Min(I, -N_q, evaluate=False) * N_k, {"N_q": 2**31, "N_k": 2**31}, 0, 1),
    (steps(I, [0, 1], [-(2**31), 5]) * N_k, {"N_k": 2**31}, 0, 1),
    (I / N_q + I / (N_q - 1), {"N_q": BIG}, 0, 1),  # the common denominator
    ((I / N_q) * (I / (N_q - 1)), {"N_q": BIG}, 0, 1),
    (sp.floor((I + N_q) / 1, evaluate=False) * N_k, {"N_q": 2**31, "N_k": 2**31}, 0, 1),
    (sp.Sum(J * N_q, (J, 0, I)), {"N_q": 2**43}, SMALL, SMALL + 1),
)


@pytest.mark.parametrize(("summand", "numbers", "first", "last"), BOUNDS, ids=lambda x: str(x)[:40])
def test_nothing_wraps_round(summand: Any, numbers: dict[str, int], first: int, last: int) -> None:
    """What could pass 2^62 is refused, whichever part it comes from."""
    with pytest.raises(NoFastSumError):
        total(summand, first, last, numbers)


def test_just_below_the_bound_it_is_exact() -> None:
    """2^62 - 1 is taken, 2^62 is not."""
    assert total(N_q + 0 * I, 0, 0, {"N_q": 2**62 - 1}) == 2**62 - 1
    assert total(N_q + I, 0, 0, {"N_q": 2**62 - 1}) == 2**62 - 1
    with pytest.raises(NoFastSumError):
        total(N_q + I, 0, 0, {"N_q": 2**62})
    assert total(I / N_q, 0, 1, {"N_q": 2**62 - 1}) == Fraction(1, 2**62 - 1)
    with pytest.raises(NoFastSumError):
        total(I / N_q, 0, 1, {"N_q": 2**62})


@pytest.mark.parametrize(
    "summand",
    [
        (I + 1) ** sp.Rational(3, 2), (I + 1) ** N_q, sp.log(I + 1), sp.Mod(I, 3, evaluate=False), 1 / (I - 2),
        sp.Piecewise((1, sp.Lt(I, 2, evaluate=False)), (2, sp.Lt(I, 3, evaluate=False)), evaluate=False),
        sp.Piecewise((1, sp.Ne(I, 2, evaluate=False)), (2, True), evaluate=False),
    ],
)  # fmt: skip
def test_what_is_made_of_no_array_is_refused(summand: Any) -> None:
    """A power that is no whole number, an operator without a rule, cases that leave some index out."""
    with pytest.raises(NoFastSumError):
        total(summand, 0, 5)


def test_an_array_has_a_largest_size() -> None:
    """Of terms, and of terms of terms."""
    assert total(I + 0 * d, 1, MOST_ELEMENTS) == MOST_ELEMENTS * (MOST_ELEMENTS + 1) // 2
    with pytest.raises(NoFastSumError):
        total(I + d, 0, MOST_ELEMENTS)
    with pytest.raises(NoFastSumError):
        total(sp.Sum(J + I, (J, 0, 2**11)), 0, 2**10)


def test_a_part_is_looked_at_once_however_often_it_stands_there() -> None:
    """What has no index is evaluated once."""
    asked: list[Any] = []

    def constant(part: Any) -> Any:
        asked.append(part)
        return value(part, AT)

    part = sp.floor(I / B_r)
    arrays = Arrays(constant, {})
    assert arrays.total(part + sp.Max(part, N_k, evaluate=False) + part**2, I, 0, 8) == sum(
        i // 3 + max(i // 3, 5) + (i // 3) ** 2 for i in range(9)
    )
    assert len(asked) == len(set(asked))


def test_a_few_numbers_are_divided_by_and_no_more() -> None:
    """16 of them come to one denominator, 17 are left to those who add one by one."""
    assert total(1 / (I + 1), 0, 15) == sum(Fraction(1, n) for n in range(1, 17))
    with pytest.raises(NoFastSumError):
        total(1 / (I + 1), 0, 16)

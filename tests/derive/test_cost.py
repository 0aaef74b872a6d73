"""Costs: units that never mix, and formulas that know where they hold."""

import pytest
import sympy as sp

from derive.cost import Cost, Move, Moves, Unit, added
from derive.errors import DomainError, UnboundError, UnitError
from derive.symbols import B_c, N_k, N_q, b, b_kv, d

MOVES = Moves({"Q": Move(read=N_q * d), "O": Move(write=N_q * d)}, Unit.ELEMENT)


def test_costs_of_one_unit_add_and_both_conditions_stay() -> None:
    """Amounts add, validity is the conjunction."""
    total = Cost(N_q, Unit.FLOP, d > 2) + Cost(N_k, Unit.FLOP, B_c > 1)
    assert total == Cost(N_q + N_k, Unit.FLOP, sp.And(d > 2, B_c > 1))


def test_units_do_not_mix() -> None:
    """Elements and bytes need a width between them."""
    with pytest.raises(UnitError, match="elements and bytes do not add; convert one of them first"):
        Cost(N_q, Unit.ELEMENT) + Cost(N_q, Unit.BYTE)
    with pytest.raises(UnitError, match="elements and bytes do not add; convert one of them first"):
        MOVES + MOVES.in_bytes({"Q": b, "O": b})


def test_a_cost_has_a_value_where_it_holds() -> None:
    """Elsewhere the refusal says what would have to be true, and where it was asked."""
    cost = Cost(N_q**2, Unit.ELEMENT, d <= N_q)
    assert cost.value({"N_q": 5, "d": 5}) == 25
    with pytest.raises(DomainError, match=r"N_q\*\*2 elements holds only where d <= N_q; at \{N_q: 4, d: 5\}"):
        cost.value({"N_q": 4, "d": 5})


def test_a_symbol_without_a_value_is_named() -> None:
    """Nothing is assumed."""
    with pytest.raises(UnboundError, match="N_q has no value yet"):
        Cost(N_q, Unit.BYTE).value({})


def test_binding_reaches_the_condition() -> None:
    """D = 8 in both."""
    assert Cost(N_q * d, Unit.BYTE, d <= N_q).bound({d: sp.Integer(8)}) == Cost(8 * N_q, Unit.BYTE, sp.Le(8, N_q))


def test_moves_add_tensor_by_tensor() -> None:
    """Q twice, K once, O twice."""
    total = MOVES + Moves({"K": Move(read=N_k)}, Unit.ELEMENT) + MOVES
    assert total.by_tensor == {"Q": Move(read=2 * N_q * d), "O": Move(write=2 * N_q * d), "K": Move(read=N_k)}
    assert total.read.amount == 2 * N_q * d + N_k
    assert total.write.amount == 2 * N_q * d
    assert total.total.amount == 4 * N_q * d + N_k


def test_each_tensor_has_a_width_of_its_own() -> None:
    """K by b_kv, O by b; bytes have none."""
    moves = Moves({"K": Move(read=N_k), "O": Move(write=N_q)}, Unit.ELEMENT).in_bytes({"K": b_kv, "O": b})
    assert moves == Moves({"K": Move(read=N_k * b_kv), "O": Move(write=N_q * b)}, Unit.BYTE)
    with pytest.raises(UnitError, match="only elements have a width; these are bytes"):
        moves.in_bytes({})


def test_the_sum_of_nothing_moves_nothing() -> None:
    """Its unit is the one asked for."""
    assert added((), Unit.BYTE) == Moves({}, Unit.BYTE)
    assert added((MOVES, MOVES), Unit.ELEMENT) == MOVES + MOVES

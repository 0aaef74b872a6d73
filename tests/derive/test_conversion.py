"""Elements converted to a wider type, one an element brought into an SM: from traffic and types alone."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings

from derive.attention import variant
from derive.conversion import converted, multiplied
from derive.exact import value
from derive.flops import is_contraction
from derive.replay import walk
from derive.schedule import Schedule
from rules.derivations import plan
from tests.strategies import PAIRS, shapes

WIDTHS = {"b": 2, "b_kv": 1, "b_s": 2, "b_p": 2, "b_l": 2, "b_part": 4}


def cut(name: str, schedule: str) -> Schedule:
    """A schedule of a variant."""
    return plan(schedule).derive(variant(name).graph()).schedule


@settings(max_examples=15)
@given(numbers=shapes())
@pytest.mark.parametrize("schedule", ["naive", "flash1", "flash2", "flash2-packed", "split-kv"])
def test_every_element_of_a_narrow_cache_is_converted_each_time_it_comes(
    schedule: str, numbers: dict[str, int]
) -> None:
    """As many as the tile walker loads of K and V."""
    made = cut("gqa", schedule)
    found = sum(value(converted(made, k, 2, WIDTHS).amount, numbers) for k in made.kernels)
    loaded = walk(made, numbers).moves
    assert found == loaded["K"][0] + loaded["V"][0]


@pytest.mark.parametrize(
    ("widths", "names"),
    [
        ({}, {"K", "V"}),
        ({"b_kv": 2}, set()),
        ({"b": 1, "b_kv": 2}, {"Q"}),
        ({"b_kv": 2, "b_s": 1, "b_l": 1}, set()),
    ],
)
def test_only_operands_of_products_that_are_narrower_count(widths: dict[str, int], names: set[str]) -> None:
    """The scaled query comes from Q; scores and statistics are made on chip, in the wider type."""
    (kernel,) = cut("mha", "flash2").kernels
    numbers = {"N_q": 3, "N_k": 5, "d": 2, "d_v": 7, "h": 1, "B": 1, "B_r": 3, "B_c": 5}
    sizes = {"Q": 3 * 2, "K": 5 * 2, "V": 5 * 7}
    found = converted(cut("mha", "flash2"), kernel, 2, {**WIDTHS, **widths}).amount
    assert value(found, numbers) == sum(sizes[name] for name in names)


def test_probabilities_that_cross_memory_in_a_narrow_type_are_converted() -> None:
    """The naive program writes P in fp8 and reads it into a product with a bf16 V."""
    made = cut("mha", "naive")
    assert [[t.name for t in multiplied(made, k)] for k in made.kernels] == [["Q", "K"], [], ["P", "V"]]
    numbers = {"N_q": 3, "N_k": 5, "d": 2, "d_v": 2, "h": 1, "B": 1}
    narrow = {**WIDTHS, "b_kv": 2, "b_p": Fraction(1)}
    assert value(converted(made, made.kernels[2], 2, narrow).amount, numbers) == 15


def test_a_type_that_only_one_product_has_widens_what_that_product_multiplies() -> None:
    """P V in a wider type: V is converted; Q and K are not, although P was made of them on chip."""
    made = cut("mha", "flash2")
    (kernel,) = made.kernels
    numbers = {"N_q": 3, "N_k": 5, "d": 2, "d_v": 7, "h": 1, "B": 1, "B_r": 3, "B_c": 5}
    found = converted(made, kernel, lambda e: 4 if "k" in {i.name for i in e.reduced} else 2, {**WIDTHS, "b_kv": 2})
    assert value(found.amount, numbers) == 5 * 7


@pytest.mark.parametrize(("name", "schedule"), PAIRS)
def test_whatever_is_multiplied_is_converted_at_most_once_a_time_it_comes(name: str, schedule: str) -> None:
    """In every variant and schedule, recurrences among them, whose states are made of themselves a step before."""
    made = cut(name, schedule)
    for kernel in made.kernels:
        found = {t.name for t in multiplied(made, kernel)}
        assert found <= {t.name for t in made.inputs_of(kernel)}
        assert bool(found) == any(is_contraction(e) for e in made.nodes(kernel))

"""Work by pipe, against counting points and the textbook counts of attention."""

import pytest
import sympy as sp
from hypothesis import given, settings

from derive.attention import variant
from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.evaluate import kept_pairs
from derive.exact import value
from derive.flops import Convention, Pipe, executed, flops, is_contraction, operations, rescaling
from derive.schedule import Schedule, lift
from derive.symbols import B, N_k, N_q, b, d, d_v, h
from rules.schedule.examples import flash, fused, loop, streaming, three_pass, two_pass
from tests.strategies import derivation, masks, schedules, shapes, variants

R, J, K = Index("i", N_q), Index("j", N_k), Index("k", d)


def test_attention_is_two_matrix_products() -> None:
    """2 B h N_q N_k (d + d_v) FLOP."""
    found = flops(three_pass())[Pipe.MMA]
    assert sp.expand(found.amount - 2 * B * h * N_q * N_k * (d + d_v)) == 0
    assert found.unit.value == "FLOP"


def test_a_softmax_is_four_vector_operations_and_an_exponential_a_score() -> None:
    """Max, shift, sum, quotient; scaling Q adds one an element."""
    found = flops(three_pass())
    assert found[Pipe.SFU].amount == B * h * N_q * N_k
    assert sp.expand(found[Pipe.VECTOR].amount - B * h * N_q * (4 * N_k + d)) == 0


def test_deferring_the_division_moves_it_to_the_output() -> None:
    """3 a score, and d_v a row."""
    found = flops(two_pass())[Pipe.VECTOR].amount
    assert sp.expand(found - B * h * N_q * (3 * N_k + d + d_v)) == 0


@settings(max_examples=60)
@given(mask=masks, numbers=shapes())
def test_conventions_count_masked_pairs_as_they_say(mask: str, numbers: dict[str, int]) -> None:
    """Exact: kept pairs one by one. Dense: all. Half: half of all where there is a mask."""
    graph = three_pass(mask)
    dense = numbers["N_q"] * numbers["N_k"]
    kept = int(kept_pairs(graph.mask, numbers).sum()) if graph.mask else dense
    each = 2 * numbers["B"] * numbers["h"] * (numbers["d"] + numbers["d_v"])

    def counted(convention: Convention) -> object:
        return value(flops(graph, convention)[Pipe.MMA].amount, numbers)

    assert counted(Convention.EXACT) == each * kept
    assert counted(Convention.DENSE) == each * dense
    assert 2 * counted(Convention.HALF) == each * dense * (1 if graph.mask else 2)  # type: ignore[operator]


def test_only_a_product_of_matrices_runs_on_the_matrix_pipe() -> None:
    """Each factor brings an index of the result: a row sum, a dot product and a matrix-vector product do not."""
    a, x = Tensor("A", (R, K), b), Tensor("x", (K,), b)
    matrix = Tensor("B", (K, J), b)
    assert is_contraction(Einsum(Tensor("y", (R, J), b), (a, matrix), Map.MUL, Reduce.SUM))
    for other in (
        Einsum(Tensor("y", (R,), b), (a, x), Map.MUL, Reduce.SUM),
        Einsum(Tensor("y", (R,), b), (x, a), Map.MUL, Reduce.SUM),
        Einsum(Tensor("y", (R,), b), (a, a), Map.MUL, Reduce.SUM),
        Einsum(Tensor("y", (R, J), b), (a, matrix), Map.MUL, Reduce.MAX),
        Einsum(Tensor("y", (R, J), b), (a, matrix), Map.ADD, Reduce.SUM),
        Einsum(Tensor("y", (R, J, K), b), (a, matrix), Map.MUL),
    ):
        assert not is_contraction(other)
        assert Pipe.MMA not in operations(other)


def test_a_reduction_beside_an_operator_is_a_second_operation() -> None:
    """Sum x y: 2; max exp x: 1 on each pipe; a copy is none."""
    a, x, y = Tensor("A", (R, K), b), Tensor("x", (K,), b), Tensor("y", (R,), b)
    assert operations(Einsum(y, (a, x), Map.MUL, Reduce.SUM)) == {Pipe.VECTOR: 2}
    assert operations(Einsum(y, (a,), Map.EXP, Reduce.MAX)) == {Pipe.SFU: 1, Pipe.VECTOR: 1}
    assert operations(Einsum(a, (a,), Map.COPY)) == {}
    for one_each in (Map.MUL, Map.ADD, Map.SUB, Map.DIV, Map.MAXIMUM):
        assert operations(Einsum(a, (a, a), one_each)) == {Pipe.VECTOR: 1}


@pytest.mark.parametrize(
    ("map_", "counts"),
    [
        *((m, {Pipe.VECTOR: 1}) for m in (Map.NEG, Map.RELU)),
        *((m, {Pipe.SFU: 1}) for m in (Map.EXP, Map.LOG, Map.TANH)),
        (Map.SIGMOID, {Pipe.SFU: 1, Pipe.VECTOR: 2}),
        (Map.VIEW, {}),
    ],
)
def test_each_function_of_one_number_has_its_count(map_: Map, counts: dict[Pipe, int]) -> None:
    """A sigmoid is 1/2 + tanh(x/2)/2 with x/2 folded into what comes before: one function, a product and a sum."""
    a = Tensor("A", (R, K), b)
    assert operations(Einsum(a, (a,), map_)) == counts


def test_a_softmax_is_opaque() -> None:
    """The message says which rule opens it."""
    with pytest.raises(IllFormedError, match="softmax is opaque to counting; apply split-softmax first"):
        flops(variant("mha").graph())
    with pytest.raises(IllFormedError, match="softmax is opaque to counting"):
        executed(lift(variant("mha").graph()))


def test_untiled_kernels_run_useful_work_without_a_mask() -> None:
    """Op by op, nothing is run twice and nothing is padded."""
    assert executed(lift(three_pass())) == flops(three_pass())


@settings(max_examples=80)
@given(variant=variants, schedule=schedules, mask=masks, numbers=shapes())
def test_no_less_is_run_than_is_useful(variant: str, schedule: str, mask: str, numbers: dict[str, int]) -> None:
    """Whole tiles cover at least the kept pairs."""
    cut = derivation(variant, schedule, mask).schedule
    useful, run = flops(cut.graph)[Pipe.MMA], executed(cut)[Pipe.MMA]
    assert value(useful.amount, numbers) <= value(run.amount, numbers)


@pytest.mark.parametrize("n", [8, 12, 20])
def test_rescaling_costs_an_exponential_a_row_and_a_product_an_element_each_trip(n: int) -> None:
    """T_c tiles, or under a causal mask of square tiles (T + 1)/2 of them for a row."""
    numbers = {"N_q": n, "N_k": n, "d": 2, "d_v": 3, "h": 2, "B": 1, "B_r": 4, "B_c": 4}
    trips, kernel = n // 4, flash("causal").kernels[0]
    skipping = Schedule(streaming("causal"), (kernel.with_(skips_masked=True),))
    for schedule, row_trips in ((flash(), n * trips), (skipping, n * (trips + 1) // 2)):
        extra = rescaling(schedule)
        assert value(extra[Pipe.SFU].amount, numbers) == 2 * row_trips
        assert value(extra[Pipe.VECTOR].amount, numbers) == 2 * row_trips * (1 + 3)


def test_without_a_running_maximum_or_a_loop_nothing_is_rescaled() -> None:
    """Two passes, or all keys at once."""
    for schedule in (fused(two_pass(), loop(two_pass(), "q")), fused(streaming(), loop(streaming(), "q"))):
        assert all(cost.amount == 0 for cost in rescaling(schedule).values())


@pytest.mark.parametrize(("pad", "widths"), [(1, 5 + 3), (2, 6 + 4), (8, 8 + 8)])
def test_widths_of_products_are_rounded_up_to_a_multiple(pad: int, widths: int) -> None:
    """A fused kernel's two products with d = 5 and d_v = 3; the scores' 7 by 6 points are whole tiles already."""
    numbers = {"N_q": 7, "N_k": 6, "d": 5, "d_v": 3, "h": 1, "B": 1, "B_r": 7, "B_c": 3}
    found = executed(derivation("mha", "flash2", "full").schedule, sp.Integer(pad))
    assert value(found[Pipe.MMA].amount, numbers) == 2 * 7 * 6 * widths

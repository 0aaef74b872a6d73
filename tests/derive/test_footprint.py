"""What is on chip and in memory at once."""

import pytest
import sympy as sp

from derive.exact import value
from derive.footprint import (
    Place,
    footprint,
    kernel_footprint,
    kernel_footprint_bytes,
    memory_peak,
    tile_size,
    tiled_kernels,
)
from derive.notation import cascade
from derive.rewrite import apply_once
from derive.schedule import Loop, lift
from derive.symbols import B, B_c, B_r, N_k, N_q, b, b_acc, b_kv, b_l, b_s, d, d_v, h
from rules.schedule import pack_heads
from rules.schedule.examples import flash, fused, loop, streaming, three_pass, two_pass
from tests.strategies import derivation

NUMBERS = {"N_q": 6, "N_k": 10, "d": 2, "d_v": 3, "h": 2, "h_k": 1, "B": 1}
WIDTHS = {"b": 2, "b_kv": 2, "b_s": 4, "b_p": 2, "b_l": 4, "b_acc": 4}


def test_a_tile_has_the_tile_s_rows_and_whole_untiled_indices() -> None:
    """flash2: Q B_r d, K B_c d, V B_c d_v, S B_r B_c."""
    schedule = flash()
    tensors, kernel = schedule.graph.tensors, schedule.kernels[0]
    sizes = {name: tile_size(kernel, tensors[name]) for name in ("Q", "K", "V", "S", "O", "m")}
    assert sizes == {"Q": B_r * d, "K": B_c * d, "V": B_c * d_v, "S": B_r * B_c, "O": B_r * d_v, "m": B_r}


def test_a_packed_tile_is_as_large_as_one_of_queries() -> None:
    """B_r rows of (query, head) pairs; K has no head to pack."""
    after = apply_once(pack_heads.RULE, pack_heads.RULE.example()).after
    kernel, tensors = after.kernels[0], after.graph.tensors  # type: ignore[union-attr]
    assert tile_size(kernel, tensors["Q"]) == B_r * d
    assert tile_size(kernel, tensors["K"]) == B_c * d


def test_inputs_are_staged_in_shared_memory_and_results_in_registers() -> None:
    """Q, K and V; S, X, E, m, l, U, O and the scaled Q."""
    schedule = flash()
    kernel = schedule.kernels[0]
    shared = kernel_footprint(schedule, kernel, Place.SHARED).amount
    registers = kernel_footprint(schedule, kernel, Place.REGISTERS).amount
    assert sp.expand(shared - (B_r * d + B_c * (d + d_v))) == 0
    assert sp.expand(registers - (B_r * d + 3 * B_r * B_c + 2 * B_r + 2 * B_r * d_v)) == 0
    assert sp.expand(kernel_footprint(schedule, kernel).amount - shared - registers) == 0


def test_bytes_are_by_width_in_shared_memory_and_by_the_accumulator_in_registers() -> None:
    """Q in b, K and V in b_kv; whatever is made in b_acc."""
    schedule = flash()
    kernel = schedule.kernels[0]
    shared = kernel_footprint_bytes(schedule, kernel, Place.SHARED).amount
    assert sp.expand(shared - (B_r * d * b + B_c * (d + d_v) * b_kv)) == 0
    registers = kernel_footprint_bytes(schedule, kernel, Place.REGISTERS).amount
    assert sp.expand(registers - b_acc * kernel_footprint(schedule, kernel, Place.REGISTERS).amount) == 0


def test_only_tiled_kernels_have_a_footprint_of_their_own() -> None:
    """An operator's tiles are its library's; a loop over heads alone tiles nothing."""
    assert footprint(lift(three_pass())) is None
    assert tiled_kernels(fused(streaming(), loop(streaming(), "h", grid=True))) == ()
    assert len(tiled_kernels(flash())) == 1
    found = footprint(flash())
    assert found is not None
    assert sp.expand(found.amount - (B_r * d * b + B_c * (d + d_v) * b_kv)) == 0


def test_whole_rows_of_scores_grow_with_the_keys() -> None:
    """Two passes forbid tiling k: K is held whole."""
    graph = two_pass()
    found = footprint(fused(graph, loop(graph, "h", grid=True), loop(graph, "q", grid=True)))
    assert found is not None
    assert found.amount.has(N_k)
    assert not footprint(flash()).amount.has(N_k)  # type: ignore[union-attr]


def test_streaming_holds_inputs_and_output_in_memory_and_naive_attention_its_scores() -> None:
    """One kernel: Q, K, V and O."""
    expected = B * h * (N_q * d * b + N_k * (d + d_v) * b_kv + N_q * d_v * b)
    assert sp.expand(memory_peak(flash()).amount - expected) == 0
    naive = memory_peak(derivation("mha", "naive", "full").schedule).amount
    assert naive.has(b_s)


def test_partial_sums_in_memory_need_room_there() -> None:
    """FlashAttention-1 keeps l and m beside O, whose room U takes; its backward pass an fp32 dQ beside dQ."""
    inputs = B * h * (N_q * d * b + N_k * (d + d_v) * b_kv)
    forward = memory_peak(derivation("mha", "flash1", "full").schedule).amount
    assert sp.expand(forward - inputs - B * h * N_q * (d_v * b + 2 * b_l)) == 0
    backward = memory_peak(derivation("mha-backward", "flash1-backward", "full").schedule).amount
    read = inputs + B * h * N_q * (2 * d_v * b + b_l)
    gradients = B * h * (N_q * d * b + N_k * (d + d_v) * b_kv)
    assert sp.expand(backward - read - gradients - B * h * N_q * d * b_acc) == 0


def test_an_intermediate_lives_from_its_writer_to_its_last_reader() -> None:
    """Op by op: at the quotient E and P live beside the inputs, X and S do not; worst of all kernels, added by hand."""
    schedule = lift(three_pass())
    width = {t.name: value(t.size * t.width, {**NUMBERS, **WIDTHS}) for t in schedule.graph.tensors.values()}
    names = [k.name for k in schedule.kernels]
    last = {
        name: max(names.index(e.output.name) for e in schedule.graph.readers[name]) for name in names if name != "O"
    }
    last["O"] = len(names)
    inputs = width["Q"] + width["K"] + width["V"]
    live = [sum(width[w] for m, w in enumerate(names) if m <= n <= last[w]) for n in range(len(names))]
    assert value(memory_peak(schedule).amount, {**NUMBERS, **WIDTHS}) == inputs + max(live)


def test_an_output_stays_after_its_last_reader() -> None:
    """A chain of three copies: the first, wanted as an output, is still there when the last is made."""
    text = """
        Y[q] = A[q] + A[q]
        Z[q] = Y[q] + Y[q]
        W[q] = Z[q] + Z[q]
    """
    for outputs, tensors in ((("W",), 3), (("Y", "W"), 4)):
        graph = cascade(text, {"q": N_q}, outputs=outputs, width=b)
        assert value(memory_peak(lift(graph)).amount, {"N_q": 5, "b": 2}) == tensors * 5 * 2


@pytest.mark.parametrize(("tile", "tiled"), [(1, False), (2, True), (64, True), (B_r, True)])
def test_a_kernel_is_tiled_from_two_on(tile: sp.Expr, tiled: bool) -> None:
    """A loop of one row a trip leaves no size to choose."""
    graph = streaming()
    rows = Loop((graph.indices["q"],), sp.sympify(tile), True)
    assert bool(tiled_kernels(fused(graph, rows))) is tiled

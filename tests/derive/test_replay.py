"""The tile walker, against moves counted by hand at shapes where one can."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings

from derive.errors import DomainError, UnboundError
from derive.mask import Mask
from derive.notation import cascade
from derive.replay import Access, stream, walk
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import ROW, N_k, N_q, b
from rules.schedule.examples import fused, loop, streaming
from tests.strategies import derivation, masks, schedules, shapes, variants

SQUARE = {"N_q": 8, "N_k": 8, "d": 2, "d_v": 2, "h": 1, "h_k": 1, "B": 1, "B_r": 4, "B_c": 4}


def moves(schedule: str, mask: str = "full", variant: str = "mha", **changes: int) -> dict[str, tuple[int, int]]:
    """What moves, tensors that do not left out."""
    walked = walk(derivation(variant, schedule, mask).schedule, {**SQUARE, **changes})
    return {name: moved for name, moved in walked.moves.items() if moved != (0, 0)}


def test_query_tiles_outside_read_keys_once_a_query_tile() -> None:
    """Two query tiles: K and V of 16 elements are read twice, Q once, and O is written once."""
    assert moves("flash2") == {"Q": (16, 0), "K": (32, 0), "V": (32, 0), "O": (0, 16)}


def test_causal_tiles_above_the_diagonal_are_not_loaded() -> None:
    """Of the 2 x 2 tiles, (0, 1) is empty: 3 key tiles of 8 elements are read."""
    assert moves("flash2", "causal") == {"Q": (16, 0), "K": (24, 0), "V": (24, 0), "O": (0, 16)}


def test_key_tiles_outside_move_partial_sums_at_every_visit() -> None:
    """Two key tiles: Q is read twice; m, l and U are read and written twice, U's last write being that of O."""
    assert moves("flash1") == {
        "Q": (32, 0),
        "K": (16, 0),
        "V": (16, 0),
        "m": (16, 16),
        "l": (16, 16),
        "U_O": (32, 16),
        "O": (0, 16),
    }


def test_a_tile_that_two_iterations_in_a_row_need_is_loaded_once() -> None:
    """Causal, keys outside: (k0, q0), (k0, q1), (k1, q1); q1 is still held at the third, so Q is read once in all."""
    assert moves("flash1", "causal") == {
        "Q": (16, 0),
        "K": (16, 0),
        "V": (16, 0),
        "m": (8, 8),
        "l": (8, 8),
        "U_O": (16, 0),
        "O": (0, 16),
    }


def test_partial_sums_that_start_on_chip_save_the_first_read_and_the_last_write() -> None:
    """Keys outside, not kept in memory: two visits of each tile are one write and one read back."""
    graph = streaming()
    schedule = fused(graph, *(loop(graph, name, grid=True) for name in "bh"), loop(graph, "k"), loop(graph, "q"))
    found = walk(schedule, SQUARE).moves
    assert (found["m"], found["l"], found["U_O"], found["O"]) == ((8, 8), (8, 8), (16, 16), (0, 16))


def test_a_partial_sum_that_leaves_is_written_at_its_last_visit_too() -> None:
    """A row sum y[q] of A[q,k] with keys outside: 8 rows, 2 visits, 2 writes and 1 read back."""
    assert row_sum("k", "q")["y"] == (8, 16)
    assert row_sum("q", "k")["y"] == (0, 8)


def row_sum(*order: str, mask: Mask | None = None, skips: bool = False) -> dict[str, tuple[int, int]]:
    """Moves of y[q] = sum_k A[q,k] x[k] with sequential loops in *order*."""
    text = "y[q] = sum[k] A[q,k] * x[k]"
    graph = cascade(text, {"q": N_q, "k": N_k}, outputs=("y",), width=b, mask=mask)
    kernel = Kernel(("y",), tuple(loop(graph, name) for name in order), skips_masked=skips)
    return walk(Schedule(graph, (kernel,)), SQUARE).moves


def test_rows_that_no_iteration_visits_are_still_written() -> None:
    """Only the last 4 queries see a key: the first tile of y is never visited, and is written once, as 0."""
    mask = Mask("late", "the last 4 queries see key 0", "q", "k", N_q, N_k, last=ROW - 4)
    found = row_sum("q", "k", mask=mask, skips=True)
    assert found["y"] == (0, 8)
    assert found["A"] == (16, 0)
    assert found["x"] == (4, 0)


def test_a_ragged_tile_counts_the_rows_it_has() -> None:
    """7 queries by 4 and 5 keys by 3: tiles of 4, 3 and 3, 2; K and V are read twice, nothing is padded."""
    assert moves("flash2", N_q=7, N_k=5, B_c=3, d_v=3) == {"Q": (14, 0), "K": (20, 0), "V": (30, 0), "O": (0, 21)}


def test_points_are_counted_in_whole_tiles() -> None:
    """7 x 5 in tiles of 4 x 3 is 2 x 2 tiles of 12 points; over d = 2, S has 96. O runs 2 tiles of 4 rows over e = 2."""
    walked = walk(derivation("mha", "flash2", "full").schedule, {**SQUARE, "N_q": 7, "N_k": 5, "B_c": 3})
    assert (walked.points["S"], walked.points["E"], walked.points["O"], walked.points["Qs"]) == (96, 48, 16, 16)
    assert walked.tile_visits == 4


def test_only_masked_work_is_spared_by_skipping() -> None:
    """Causal 2 x 2 tiles of 16: three are run; O and the scaling of Q run over no key and are not spared."""
    walked = walk(derivation("mha", "flash2", "causal").schedule, SQUARE)
    assert (walked.points["S"], walked.points["m"], walked.points["O"], walked.points["Qs"]) == (96, 48, 16, 16)
    assert walked.tile_visits == 3
    empty_rows = walk(derivation("mha", "flash2", "causal").schedule, {**SQUARE, "N_k": 4})
    assert (empty_rows.points["S"], empty_rows.points["O"], empty_rows.points["Qs"]) == (32, 16, 16)
    unskipped = walk(derivation("mha", "row-resident", "causal").schedule, SQUARE)
    assert (unskipped.points["S"], unskipped.tile_visits) == (128, 2)


def test_packed_heads_share_keys() -> None:
    """Two query heads a KV head, one query each: packed, one tile of 2 rows reads K once; apart, two tiles read it twice."""
    heads = {"h": 2, "h_k": 1, "N_q": 1}
    assert moves("flash2", variant="gqa", **heads)["K"] == (32, 0)
    assert moves("flash2-packed", variant="gqa", **heads)["K"] == (16, 0)


def test_the_query_of_a_packed_row_decides_what_it_sees() -> None:
    """Rows are (query, head) with heads fastest: 4 queries x 2 heads in tiles of 4 rows are queries 0-1 and 2-3."""
    numbers = {"h": 2, "h_k": 1, "N_q": 4, "N_k": 4, "B_r": 4, "B_c": 2}
    assert moves("flash2-packed", "causal", variant="gqa", **numbers)["K"] == (4 + 8, 0)


def test_private_batches_and_heads_multiply_everything() -> None:
    """2 sequences of 3 heads move 6 times what one head moves."""
    one, six = moves("flash2", "causal"), moves("flash2", "causal", B=2, h=3)
    assert six == {name: (6 * read, 6 * written) for name, (read, written) in one.items()}


def test_op_by_op_moves_every_intermediate_across_memory() -> None:
    """S (64 elements) is written once and read by the maximum and by the shift."""
    found = moves("op-by-op")
    assert found["S"] == (128, 64)
    assert found["E"] == (128, 64)
    assert found["O"] == (0, 16)


def test_the_most_that_is_held_is_one_tile_of_each_input() -> None:
    """A tile of Q, K and V is 8 elements each; a kernel without loops holds its operands whole."""
    assert walk(derivation("mha", "flash2", "full").schedule, SQUARE).live == {"Qs..O": 24}
    assert walk(derivation("mha", "naive", "full").schedule, SQUARE).live == {"Qs..S": 32, "m..P": 64, "O": 80}


def test_the_stream_is_in_grid_order() -> None:
    """Two CTAs; each loads its Q tile and both key tiles, and writes its tile of O last."""
    schedule = derivation("mha", "flash2", "full").schedule
    first, second = stream(schedule, schedule.kernels[0], SQUARE)
    assert [(a.tensor, a.tile) for a in first] == [
        ("Q", (0, 0, 0)),
        ("K", (0, 0, 0)),
        ("V", (0, 0, 0)),
        ("K", (0, 0, 1)),
        ("V", (0, 0, 1)),
        ("O", (0, 0, 0)),
    ]
    assert second[0] == Access("Q", (0, 0, 1), 8, True)
    assert second[-1] == Access("O", (0, 0, 1), 8, False)


def test_a_missing_number_is_named() -> None:
    """A tile size that has no value is an error that says which."""
    without = {name: n for name, n in SQUARE.items() if name != "B_c"}
    with pytest.raises(UnboundError, match="B_c has no value"):
        walk(derivation("mha", "flash2", "full").schedule, without)


def test_an_extent_must_be_whole() -> None:
    """Three heads in groups of two are no number of heads a group."""
    with pytest.raises(DomainError, match=r"h/h_k is 3/2, no whole number"):
        walk(derivation("gqa", "flash2", "full").schedule, {**SQUARE, "h": 3, "h_k": 2})


@settings(max_examples=150)
@given(variant=variants, schedule=schedules, mask=masks, numbers=shapes())
def test_the_stream_adds_up_to_the_moves(variant: str, schedule: str, mask: str, numbers: dict[str, int]) -> None:
    """Every output is written whole at least once, and what the streams hold is what the walk counts."""
    cut = derivation(variant, schedule, mask).schedule
    found = walk(cut, numbers).moves
    counted = dict.fromkeys(found, (0, 0))
    for access in (a for kernel in cut.kernels for cta in stream(cut, kernel, numbers) for a in cta):
        read, written = counted[access.tensor]
        more = access.elements
        counted[access.tensor] = (read + more, written) if access.is_read else (read, written + more)
    assert counted == found
    heads = numbers["h"] * numbers["B"] * numbers["d_v"]
    assert found["O"][1] == heads * (1 if variant == "decode" else numbers["N_q"])


def test_a_tile_as_large_as_the_problem_reads_everything_once() -> None:
    """One tile each: compulsory traffic, nothing else, whatever the loop order."""
    once = {"Q": (16, 0), "K": (16, 0), "V": (16, 0), "O": (0, 16)}
    assert moves("flash2", B_r=99, B_c=99) == once
    assert moves("flash1", B_r=99, B_c=99) == once


def test_a_loop_may_flatten_all_indices_of_a_tensor() -> None:
    """y[q,h] = A[q,h] * A[q,h] over 3 x 2 rows by 4: two tiles, 6 elements read and written once."""
    graph = cascade("y[q,k] = A[q,k] * A[q,k]", {"q": N_q, "k": N_k}, outputs=("y",), width=b)
    rows = Loop((graph.indices["q"], graph.indices["k"]), sp.Integer(4))
    walked = walk(Schedule(graph, (Kernel(("y",), (rows,)),)), {"N_q": 3, "N_k": 2})
    assert walked.moves == {"A": (6, 0), "y": (0, 6)}
    assert walked.points == {"y": 8}

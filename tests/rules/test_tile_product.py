"""Square tiles of a matrix product: what crosses memory with all three loops tiled."""

import sympy as sp

from derive.buffers import working_set
from derive.rewrite import apply_once
from derive.schedule import Schedule, lift
from derive.symbols import B, B_c, B_d, B_r, N_k, N_q, d, h
from derive.traffic import kernel_traffic
from rules.schedule import tile_product
from rules.schedule.examples import three_pass


def tiled() -> Schedule:
    """S = Q K^T in tiles of all its loops."""
    after = apply_once(tile_product.RULE, tile_product.RULE.example()).after
    assert isinstance(after, Schedule)
    return after


def test_each_operand_is_read_once_for_each_tile_of_the_other() -> None:
    """Q ceil(N_k/B_c) times, K ceil(N_q/B_r) times, S written once, where every loop has several trips."""
    schedule = tiled()
    moved = kernel_traffic(schedule, schedule.kernel_of["S"]).by_tensor
    several = {"N_q": 4, "N_k": 6, "d": 4, "h": 1, "B": 1, "B_r": 2, "B_c": 2, "B_d": 2}
    by_name = {s: several[s.name] for s in (N_q, N_k, d, h, B, B_r, B_c, B_d)}
    assert moved["Qs"].read.subs(by_name) == 4 * 4 * 3
    assert moved["K"].read.subs(by_name) == 6 * 4 * 2
    assert (moved["S"].read.subs(by_name), moved["S"].write.subs(by_name)) == (0, 24)


def test_tiles_of_three_tensors_fill_fast_memory() -> None:
    """B_r B_d + B_c B_d + B_r B_c, whatever the extents."""
    schedule = tiled()
    found = working_set(schedule, schedule.kernel_of["S"]).amount
    assert sp.expand(found - (B_r * B_d + B_c * B_d + B_r * B_c)) == 0


def test_a_softmax_is_left_as_it_is() -> None:
    """Only products have tiles of their own; what they share with no operand runs on the grid."""
    schedule = lift(three_pass())
    while (match := next(tile_product.RULE.matches(schedule), None)) is not None:
        schedule = tile_product.rewrite(schedule, match)
    assert {k.name for k in schedule.kernels if k.loops} == {"S", "O"}
    assert [x.grid for x in schedule.kernel_of["S"].loops] == [True, True, False, False, False]

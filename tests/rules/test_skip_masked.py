"""Skipping masked tiles: of the key tiles only those with a kept pair are met."""

import pytest

from derive.attention import variant
from derive.exact import value
from derive.flops import Pipe, executed
from derive.graph import Graph
from derive.replay import walk
from derive.rewrite import apply_once
from derive.schedule import Schedule
from derive.traffic import traffic
from rules.derivations import plan
from rules.schedule.examples import flash, fused, loop, streaming
from rules.schedule.skip_masked import RULE
from tests.rules.meaning import counted, walked

D = 2


@pytest.mark.parametrize("tiles", [1, 2, 3, 7])
def test_a_causal_square_of_t_by_t_tiles_meets_half_of_them_and_the_diagonal(tiles: int) -> None:
    """T (T + 1)/2 instead of T T: tile visits, K's reads and the work."""
    step = apply_once(RULE, RULE.example())
    numbers = {"N_q": 4 * tiles, "N_k": 4 * tiles, "B_r": 4, "B_c": 4, "d": D, "d_v": D, "h": 1, "B": 1}
    for schedule, met in ((step.before, tiles**2), (step.after, tiles * (tiles + 1) // 2)):
        assert isinstance(schedule, Schedule)
        assert walk(schedule, numbers).tile_visits == met
        assert value(traffic(schedule).by_tensor["K"].read, numbers) == 4 * D * met
        assert value(executed(schedule)[Pipe.MMA].amount, numbers) == 2 * 2 * 4 * 4 * D * met


def test_queries_and_the_output_move_as_before() -> None:
    """Each query tile meets some key tile."""
    step = apply_once(RULE, RULE.example())
    assert isinstance(step.before, Schedule)
    assert isinstance(step.after, Schedule)
    numbers = {"N_q": 9, "N_k": 9, "B_r": 4, "B_c": 2, "d": D, "d_v": D, "h": 1, "B": 1}
    before, after = traffic(step.before).by_tensor, traffic(step.after).by_tensor
    assert value(before["Q"].read, numbers) == value(after["Q"].read, numbers) == 9 * D
    assert value(before["O"].write, numbers) == value(after["O"].write, numbers) == 9 * D


@pytest.mark.parametrize("in_memory", [False, True])
def test_rows_of_sums_that_see_no_key_are_written_too(in_memory: bool) -> None:
    """9 queries on 4 keys, keys outside: m and l of the first tiles are never visited and still leave, as empty sums."""
    graph = streaming("causal")
    leaving = Graph(graph.einsums, ("O", "m", "l", "U_O"))
    nest = fused(leaving, loop(leaving, "k"), loop(leaving, "q"))
    schedule = Schedule(leaving, (nest.kernels[0].with_(skips_masked=True, in_memory=in_memory),))
    numbers = {"N_q": 9, "N_k": 4, "B_r": 2, "B_c": 2, "d": D, "d_v": D, "h": 1, "B": 1}
    assert counted(schedule, numbers) == walked(schedule, numbers)


def test_nothing_is_skipped_without_a_mask_or_without_tiles_of_both_indices() -> None:
    """There is no tile that a mask could empty."""
    graph = streaming("causal")
    assert not list(RULE.shape(flash()))
    assert not list(RULE.shape(fused(graph, loop(graph, "q", grid=True))))
    assert not list(RULE.shape(fused(graph, loop(graph, "k"))))


@pytest.mark.parametrize("name", ["flash1-backward", "flash2-backward"])
def test_a_backward_pass_that_leaves_every_pair_runs_every_tile(name: str) -> None:
    """The gradient of a bias is written for masked pairs too: the plan goes on without the rule, and without its saving."""
    whole, skipping = (
        plan(name).derive(variant(v).graph("causal")).schedule for v in ("bias-backward", "mha-backward")
    )
    assert any(kernel.skips_masked for kernel in skipping.kernels)
    assert not any(kernel.skips_masked for kernel in whole.kernels)

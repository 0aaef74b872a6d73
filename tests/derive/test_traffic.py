"""The re-read rule against the tile walker, which knows no formula."""

from hypothesis import example, given, settings

from derive.einsum import Map
from derive.exact import value
from derive.flops import Pipe, executed, is_contraction, operations
from derive.footprint import Place, kernel_footprint
from derive.replay import walk
from derive.residency import dram
from derive.schedule import Schedule
from derive.traffic import compulsory, traffic
from tests.strategies import derivation, fitted, masks, pairs, shapes

RAGGED = {"N_q": 18, "N_k": 4, "d": 2, "d_v": 3, "h_k": 2, "h": 2, "B": 2, "B_r": 7, "B_c": 4}
LONELY_LAST_ROW_TILE = {"N_q": 15, "N_k": 15, "d": 4, "d_v": 3, "h_k": 3, "h": 3, "B": 1, "B_r": 2, "B_c": 2}


def fixed(variant: str, numbers: dict[str, int]) -> dict[str, int]:
    """The numbers as *variant* reads them: a decode step has one query, and chunks divide a sequence."""
    return {**numbers, "N_q": 1} if variant == "decode" else fitted(variant, numbers)


@settings(max_examples=600)
@given(pair=pairs, mask=masks, numbers=shapes())
@example(pair=("gqa", "flash1"), mask="causal", numbers=RAGGED)
@example(pair=("mha", "flash1"), mask="causal", numbers=LONELY_LAST_ROW_TILE)
@example(pair=("sink-logits", "flash2"), mask="causal", numbers=RAGGED)  # row tiles that see no key read no sink
@example(pair=("bias", "flash2"), mask="causal", numbers=LONELY_LAST_ROW_TILE)
@example(pair=("gqa-backward", "flash1-backward"), mask="causal", numbers={**LONELY_LAST_ROW_TILE, "h": 6})
def test_closed_form_equals_the_walk(pair: tuple[str, str], mask: str, numbers: dict[str, int]) -> None:
    """Reads and writes of every tensor, ragged tiles, masks, heads and packing included."""
    cut, numbers = derivation(*pair, mask).schedule, fixed(pair[0], numbers)
    walked = {name: moved for name, moved in walk(cut, numbers).moves.items() if moved != (0, 0)}
    counted = {
        name: (value(move.read, numbers), value(move.write, numbers)) for name, move in traffic(cut).by_tensor.items()
    }
    assert {name: moved for name, moved in counted.items() if moved != (0, 0)} == walked


def adds_two_products(cut: Schedule, name: str) -> bool:
    """Whether *name* adds two matrix products that its own kernel makes for it alone."""
    e, kernel = cut.graph.producers[name], cut.kernel_of[name]
    makers = [cut.graph.producers.get(t.name) for t in e.inputs]
    return e.map is Map.ADD and all(
        m is not None
        and is_contraction(m)
        and m.output.name in kernel.einsums
        and cut.graph.readers[m.output.name] == (e,)
        for m in makers
    )


@settings(max_examples=300)
@given(pair=pairs, mask=masks, numbers=shapes())
@example(pair=("alibi", "flash2"), mask="full", numbers=RAGGED)  # each CTA makes the slopes' part again
@example(pair=("alibi", "flash2"), mask="causal", numbers=LONELY_LAST_ROW_TILE)
def test_executed_work_equals_the_walk(pair: tuple[str, str], mask: str, numbers: dict[str, int]) -> None:
    """Whole tiles are run: points of every Einsum times its operations a point, by pipe."""
    cut, numbers = derivation(*pair, mask).schedule, fixed(pair[0], numbers)
    walked = dict.fromkeys(Pipe, 0)
    for name, points in walk(cut, numbers).points.items():
        if adds_two_products(cut, name):  # in one accumulator: the second product goes on where the first one ended
            continue
        for pipe, each in operations(cut.graph.producers[name]).items():
            walked[pipe] += each * points
    assert {pipe: value(cost.amount, numbers) for pipe, cost in executed(cut).items()} == walked


@settings(max_examples=200)
@given(pair=pairs, mask=masks, numbers=shapes())
def test_no_more_is_held_than_the_footprint(pair: tuple[str, str], mask: str, numbers: dict[str, int]) -> None:
    """Elements of inputs held at once in a CTA stay within its buffers, and fill them when no tile is ragged."""
    cut, numbers = derivation(*pair, mask).schedule, fixed(pair[0], numbers)
    live = walk(cut, numbers).live
    for kernel in cut.kernels:
        room = value(kernel_footprint(cut, kernel, Place.SHARED).amount, numbers)
        fits = all(value(x.tile, numbers) <= value(x.extent, numbers) for x in kernel.loops)
        assert live[kernel.name] <= room
        if fits and not kernel.skips_masked:
            assert live[kernel.name] == room


@settings(max_examples=200)
@given(pair=pairs, mask=masks, numbers=shapes())
def test_compulsory_dram_and_sm_bytes_are_in_order(pair: tuple[str, str], mask: str, numbers: dict[str, int]) -> None:
    """0 <= compulsory <= SM-side, and HBM traffic lies between nothing and the SM-side count, tensor by tensor."""
    cut, numbers = derivation(*pair, mask).schedule, fixed(pair[0], numbers)
    machine = {
        "C": 4,
        "C_L2": 600,
        "b": 2,
        "b_kv": 2,
        "b_s": 2,
        "b_p": 2,
        "b_l": 2,
        "b_acc": 4,
        "b_part": 4,
        "b_h": 2,
        "b_i": 2,
    }
    seen, hbm = traffic(cut).by_tensor, dram(cut).by_tensor
    for name, move in compulsory(cut.graph).by_tensor.items():
        assert 0 <= value(move.read, numbers) <= value(seen[name].read, numbers)
        assert 0 <= value(move.write, numbers) <= value(seen[name].write, numbers)
    for name, move in hbm.items():
        assert 0 <= value(move.read, {**numbers, **machine}) <= value(seen[name].read, numbers)
        assert 0 <= value(move.write, {**numbers, **machine}) <= value(seen[name].write, numbers)

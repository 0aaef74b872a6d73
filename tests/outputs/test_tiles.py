"""Tiles that fit, in their order, against every tile tried one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derive.attention import variant
from derive.errors import BadValueError, InfeasibleError
from derive.exact import value
from hardware import Machine, load
from outputs import tiles as module
from outputs.deduction import Options, unfitted
from outputs.request import Request, read_request
from outputs.tiles import Choices, Limit, Tiling, tiling

H100 = load("h100-sxm")


def _machine(shared: int, registers: int, mma_rows: int = 1) -> Machine:
    """A machine with little memory, otherwise an H100."""
    smaller = {"shared_mem_per_block_max": shared, "registers_per_sm": registers, "mma_rows": mma_rows}
    constants = dict(H100.constants)
    for name, number in smaller.items():
        constants[name] = replace(constants[name], value=Fraction(number))
    return replace(H100, id="small", constants=MappingProxyType(constants))


def _request(*words: str, name: str = "mha") -> Request:
    return read_request(variant(name), words)


@settings(max_examples=12, deadline=None)
@given(
    lengths=st.tuples(st.integers(1, 25), st.integers(1, 25)),
    d=st.integers(1, 6),
    rooms=st.tuples(st.integers(100, 900), st.integers(200, 2000)),
    stages=st.integers(1, 3),
    step=st.integers(3, 6),
    mask=st.sampled_from(["full", "causal"]),
)
def test_the_ranking_is_that_of_every_tile_tried(
    lengths: tuple[int, int], d: int, rooms: tuple[int, int], stages: int, step: int, mask: str
) -> None:
    """Each multiple of the step up to the first that covers, held to the limits by hand, with an account of its own."""
    words = (f"Nq={lengths[0]}", f"Nk={lengths[1]}", f"d={d}", f"mask={mask}")
    machine = _machine(*rooms)
    expected = []
    for r, c in product(*(range(step, n + step, step) for n in lengths)):
        shared = 2 * (r * d + stages * 2 * c * d)
        registers = 4 * (r * c + r * d + 2 * r)
        if shared <= rooms[0] and registers <= rooms[1]:
            made = unfitted(_request(*words, f"Br={r}", f"Bc={c}"), "flash2", machine, Options())
            bytes_ = [made.whole(moves.total.amount) for moves in (made.sm, made.dram, made.compulsory)]
            expected.append((bytes_[0], bytes_[1], shared, r, c, registers, bytes_[2]))
    found = tiling(_request(*words), "flash2", machine, choices=Choices(stages, step))
    if not expected:
        with pytest.raises(InfeasibleError, match="no tile of flash2 fits small"):
            _ = found.fitting
        return
    assert [
        (t.sm, t.dram, t.shared, t.sizes["B_r"], t.sizes["B_c"], t.registers, t.compulsory) for t in found.fitting
    ] == sorted(expected)


QUESTIONS = [
    ("mha", "flash2", ("N=8192", "d=128")),
    ("mha", "flash1", ("N=4096", "d=64")),
    ("mha", "square", ("N=1024", "d=64")),
    ("mha", "row-resident", ("N=512", "d=64")),
    ("gqa", "flash2-packed", ("N=2048", "d=128", "h=8", "hk=2")),
    ("decode", "flash2", ("Nk=8192", "d=128")),
]


@pytest.fixture(params=QUESTIONS, ids=lambda q: f"{q[0]}-{q[1]}")
def question(request: pytest.FixtureRequest) -> Tiling:
    """One of several schedules with tiles, on an H100."""
    name, schedule, words = request.param
    return tiling(_request(*words, name=name), schedule, H100, choices=Choices(step=32))


def test_what_fits_still_fits_when_it_shrinks(question: Tiling) -> None:
    """The set is closed downwards, so stopping at the first size that does not fit loses none."""
    fitting = {tuple(t.sizes.values()) for t in question.fitting}
    for sizes in fitting:
        for n, name in enumerate(question.extents):
            smaller = (*sizes[:n], sizes[n] - question.steps[name], *sizes[n + 1 :])
            assert smaller in fitting or smaller[n] == 0


def test_a_step_up_is_ranked_or_says_which_limit_it_breaks(question: Tiling) -> None:
    """A neighbour without a limit is on the list; one with a limit needs more than there is."""
    fitting = {tuple(t.sizes.values()) for t in question.fitting}
    for tile in question.fitting:
        for name, (more, broken) in question.neighbours(tile).items():
            sizes = {**tile.sizes, name: more}
            assert (tuple(sizes.values()) in fitting) == (not broken)
            for limit in set(broken) - {Limit.EXTENT}:
                assert question.needed(limit, sizes) > question.rooms[limit]
            assert Limit.EXTENT not in broken or tile.sizes[name] >= question.extents[name]


def test_every_level_is_at_least_compulsory_and_the_order_is_by_bytes(question: Tiling) -> None:
    """Compulsory <= DRAM <= SM-side, and a tile further down moves no fewer SM-side bytes."""
    sm = [tile.sm for tile in question.fitting]
    assert sm == sorted(sm)
    for tile in question.fitting:
        assert tile.dram is not None
        assert tile.compulsory <= tile.dram <= tile.sm


def test_rows_are_multiples_of_the_machine_s_matrix_instruction() -> None:
    """64 on Hopper, whatever the step; the step alone elsewhere."""
    hopper = tiling(_request("N=8192", "d=128"), "flash2", H100, choices=Choices(step=48))
    ampere = tiling(_request("N=8192", "d=128"), "flash2", load("a100-sxm-80gb"), choices=Choices(step=48))
    assert hopper.steps == {"B_r": 192, "B_c": 48}
    assert ampere.steps == {"B_r": 48, "B_c": 48}


def test_a_tile_that_is_given_is_kept() -> None:
    """Only the others are chosen, and it need be no multiple of the step."""
    found = tiling(_request("N=8192", "d=128", "Br=120"), "flash2", H100)
    assert {tile.sizes["B_r"] for tile in found.fitting} == {120}
    assert [tile.sizes["B_c"] for tile in found.fitting] == list(range(16, 193, 16))
    assert all(set(found.neighbours(tile)) == {"B_c"} for tile in found.fitting)


def test_rows_are_dealt_evenly_to_warp_groups() -> None:
    """192 rows at 64 a group read K and V three times a CTA, and so do 144 rows, 48 a group."""
    found = tiling(_request("N=1152", "d=64"), "flash2", H100)
    operand = 1152 * 64 * 2
    for rows, each in ((192, 64), (144, 48), (64, 64), (48, 48)):
        assert found.to_registers({"B_r": rows, "B_c": 64}) == operand + 2 * operand * (1152 // each)


def test_more_ctas_on_an_sm_share_its_memory() -> None:
    """Two CTAs have half the registers and half the shared memory of the SM each."""
    two = tiling(_request("N=8192", "d=128"), "flash2", H100, Options(ctas_an_sm=2))
    assert two.rooms == {Limit.SHARED: 114 * 1024, Limit.REGISTERS: 128 * 1024}
    one = tiling(_request("N=8192", "d=128"), "flash2", H100)
    assert {tuple(t.sizes.values()) for t in two.fitting} < {tuple(t.sizes.values()) for t in one.fitting}


def test_fewer_registers_leave_fewer_tiles() -> None:
    """FlashAttention-3 counts 128 registers a thread for three warp groups: 192 x 176 then no longer fits."""
    budget = 128 * 4 * 3 * 128
    sizes = {"B_r": 192, "B_c": 176}
    whole = tiling(_request("N=8192", "d=128"), "flash2", H100)
    less = tiling(_request("N=8192", "d=128"), "flash2", H100, choices=Choices(registers=budget))
    assert whole.broken(sizes) == ()
    assert less.broken(sizes) == (Limit.REGISTERS,)


def test_dram_is_left_open_where_the_cache_is_not_known() -> None:
    """Without an L2 in the machine's file the order goes by the other counts."""
    constants = {k: v for k, v in H100.constants.items() if k != "l2_size"}
    found = tiling(_request("N=1024", "d=64"), "flash2", replace(H100, constants=MappingProxyType(constants)))
    assert all(tile.dram is None for tile in found.fitting)


@pytest.mark.parametrize("d", [4096, 2000])
def test_the_largest_head_dimension_that_fits_is_named(d: int) -> None:
    """The size in the message fits, and the next does not."""
    found = tiling(_request("N=8192", f"d={d}"), "flash2", H100)
    with pytest.raises(
        InfeasibleError, match=r"no tile of flash2 fits h100-sxm: .*; the largest d that would fit is 908"
    ):
        _ = found.fitting
    assert tiling(_request("N=8192", "d=908"), "flash2", H100).fitting
    with pytest.raises(InfeasibleError, match="shared memory"):
        _ = tiling(_request("N=8192", "d=909"), "flash2", H100).fitting


def test_a_row_that_does_not_fit_names_the_longest_that_does() -> None:
    """Where whole rows are held it is their length."""
    with pytest.raises(InfeasibleError, match=r"the largest Nk that would fit is \d+"):
        _ = tiling(_request("N=1M", "d=64"), "row-resident", H100).fitting


def test_a_schedule_without_tiles_is_refused() -> None:
    """Its matrix products are a library's."""
    with pytest.raises(BadValueError, match="naive has no tile to choose"):
        tiling(_request("N=8192", "d=64"), "naive", H100)


def test_too_many_tiles_ask_for_a_larger_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million tiles are no answer."""
    monkeypatch.setattr(module, "MOST", 20)
    with pytest.raises(BadValueError, match="--step 16 leaves more than 20 tiles"):
        _ = tiling(_request("N=8192", "d=64"), "flash2", H100).fitting


@given(r=st.integers(1, 500), c=st.integers(1, 500), d=st.integers(1, 300), stages=st.integers(1, 5))
def test_needs_never_fall_as_tiles_or_stages_grow(r: int, c: int, d: int, stages: int) -> None:
    """Shared memory and registers are monotone in every size."""
    found = tiling(_request("N=8192", "d=128"), "flash2", H100)
    for limit in (Limit.SHARED, Limit.REGISTERS):
        at = {"B_r": r, "B_c": c, "d": d}
        for name in at:
            assert found.needed(limit, at) <= found.needed(limit, {**at, name: at[name] + 1})
    more = replace(found, choices=Choices(stages=stages + 1))
    less = replace(found, choices=Choices(stages=stages))
    (form,), (larger,) = less.needs[Limit.SHARED], more.needs[Limit.SHARED]
    numbers = {**found.account.values, "B_r": r, "B_c": c}
    assert value(form, numbers) < value(larger, numbers)

"""Tiles of FlashAttention-2 and FlashAttention-3: they fit, at the bytes that their authors count, or the difference is stated.

Sources: Dao-AILab/flash-attention, csrc/flash_attn/src/flash_fwd_launch_template.h, hopper/tile_size.h, and the accounting in
AI/SM90_BLOCK_SIZE_TUNING.md and in comments of the first two.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from derive.attention import variant
from hardware import load, names
from outputs.published_tiles import PublishedTile, published_for, published_tiles
from outputs.request import read_request
from outputs.tile_comparison import Comparison, compared
from outputs.tiles import Choices, Limit, Tiling, tiling
from rules.derivations import names as schedule_names

KIB = 1024
TYPES = {16: "bf16", 8: "fp8"}


def _tiling(machine: str, *words: str, stages: int = 2, results_shared: bool = False) -> Tiling:
    request = read_request(variant("mha"), ("N=8192", *words))
    return tiling(request, "flash2", load(machine), choices=Choices(stages=stages, results_shared=results_shared))


def _machines(line: PublishedTile) -> list[str]:
    capabilities = {name: load(name).get("compute_capability") for name in names()}
    return [n for n, c in capabilities.items() if c is not None and c.value in line.capabilities]


def _asks(line: PublishedTile, mask: str) -> list[Tiling]:
    words = (f"d={line.d_max}", f"dv={line.d_v[1]}", f"dtype={TYPES[line.bits]}", f"mask={mask}")
    return [_tiling(machine, *words) for machine in _machines(line)]


LINES = [
    pytest.param(x, mask, id=f"{x.kernel}-{x.d_max}-{x.d_v[1]}-{mask}") for x in published_tiles() for mask in x.masks
]


@pytest.mark.parametrize(("line", "mask"), LINES)
def test_every_published_tile_is_found_and_fits(line: PublishedTile, mask: str) -> None:
    """On each machine that its table is for, at its own stages."""
    asked = _asks(line, mask)
    assert asked
    for question in asked:
        assert published_for(question) == (line,)
        (found,) = compared(question)
        assert found.broken == ()


@pytest.mark.parametrize(("line", "mask"), LINES)
def test_every_published_tile_has_its_place_in_the_ranking(line: PublishedTile, mask: str) -> None:
    """The best moves no more than it, its widest and its nearest fit, and the nearest moves less."""
    (found,) = compared(_asks(line, mask)[0])
    assert found.ratio >= 1
    assert found.rank == 1 + len([t for t in found.others if t.sm < found.tile.sm])
    assert (found.nearest is None) == (found.rank == 1)
    assert found.nearest is None or found.nearest.sm < found.tile.sm
    assert found.tiling.broken(found.widest.sizes) == ()
    assert found.widest.sizes["B_c"] >= line.sizes["B_c"]


def test_tables_name_schedules_that_exist() -> None:
    """A renamed schedule would silently lose its table."""
    assert all(set(line.schedules) <= set(schedule_names()) for line in published_tiles())


@pytest.mark.parametrize(
    ("machine", "d", "sizes", "stages", "kib"),
    [
        ("h100-sxm", 128, (128, 192), 2, 224),  # SM90_BLOCK_SIZE_TUNING.md: "224K smem"
        ("a100-sxm-80gb", 256, (128, 64), 1, 128),  # launch template: "128 x 64 (128KB smem)"
        ("a10g", 256, (64, 64), 1, 96),  # launch template: "64 x 64 (96KB smem)"
        ("a10g", 128, (128, 32), 1, 48),  # launch template: "128 x 32 (48 KB smem)"
    ],
)
def test_shared_memory_is_what_the_authors_count(
    machine: str, d: int, sizes: tuple[int, int], stages: int, kib: int
) -> None:
    """Q once, K and V once a stage."""
    found = _tiling(machine, f"d={d}", stages=stages)
    assert found.needed(Limit.SHARED, dict(zip(("B_r", "B_c"), sizes, strict=True))) == kib * KIB


@pytest.mark.parametrize(
    ("d", "widest", "results_shared"),
    [
        (128, 192, False),  # tile_size.h: "128 x 192 hits the limit of smem if MmaPV_is_RS"
        (128, 144, True),  # tile_size.h: "128 x 144 hits the limit if !MmaPV_is_RS"
        (192, 112, False),  # tile_size.h: "128 x 112 hits the limit of smem"
        (256, 80, False),  # tile_size.h: "128 x 80 hits the limit of smem"
    ],
)
def test_the_widest_tile_at_128_rows_is_where_the_authors_hit_the_limit(
    d: int, widest: int, results_shared: bool
) -> None:
    """One step of 16 keys further breaks shared memory, and it alone."""
    found = _tiling("h100-sxm", f"d={d}", results_shared=results_shared)
    tile = found.at({"B_r": 128, "B_c": widest})
    assert found.broken(tile.sizes) == ()
    assert found.neighbours(tile)["B_c"] == (widest + 16, (Limit.SHARED,))


def test_where_the_authors_count_more_the_difference_is_what_we_leave_out() -> None:
    """O staged in Q's buffer counts where d_v > d, and P beside S where the two products overlap."""
    wide = _tiling("h100-sxm", "d=64", "dv=512", results_shared=True)
    q, k, v, o, p = (2 * n for n in (64 * 64, 64 * 64, 64 * 512, 64 * 512, 64 * 64))
    authors = max(q, o) + 2 * k + 2 * v + p
    assert authors - wide.needed(Limit.SHARED, {"B_r": 64, "B_c": 64}) == o - q
    narrow = _tiling("h100-sxm", "d=128")
    s, o = 4 * 128 * 176, 4 * 128 * 128
    statistics = 4 * 2 * 128
    assert narrow.needed(Limit.REGISTERS, {"B_r": 128, "B_c": 176}) == s + o + statistics
    a_thread = (s + s // 2 + o) // (4 * 2 * 128)
    assert a_thread == 196 <= 216  # the budget of two warp groups in SM90_BLOCK_SIZE_TUNING.md


def test_the_gap_is_computed() -> None:
    """On an H100 at d = 128 more rows would move fewer SM-side bytes and no fewer DRAM bytes."""
    (found,) = compared(_tiling("h100-sxm", "d=128"))
    assert (str(found.tile), str(found.best), str(found.widest), str(found.nearest)) == (
        "128 x 176", "448 x 16", "128 x 192", "192 x 176",
    )  # fmt: skip
    assert found.ratio == (1 + 64) / (1 + 19)  # 2 N d b (1 + ceil(N / B_r))
    assert found.tile.dram == found.best.dram
    for words in ("208 KiB of 227 KiB", "153 KiB of 256 KiB", "3.25 times", "192 x 176 would move 32 % less"):
        assert words in found.sentence


def test_a_tile_that_does_not_fit_says_which_limit_it_breaks() -> None:
    """FlashAttention-3's tile for d = 128 on a machine with the shared memory of an A100."""
    line = next(x for x in published_tiles() if x.sizes == {"B_r": 128, "B_c": 176})
    found = Comparison(line, _tiling("a100-sxm-80gb", "d=128"))
    assert found.broken == (Limit.SHARED,)
    assert "does not fit in this model" in found.sentence
    assert found.sentence.endswith("which breaks shared memory")


def test_padding_of_the_head_dimension_is_said() -> None:
    """A kernel for 96 runs d = 80; our bytes are those of 80."""
    (found,) = compared(_tiling("h100-sxm", "d=80"))
    assert found.published.d_max == 96
    assert "were d = 80 not padded to 96" in found.sentence
    (whole,) = compared(_tiling("h100-sxm", "d=96"))
    assert "padded" not in whole.sentence


@pytest.mark.parametrize("words", [("d=512",), ("d=128", "dtype=fp32"), ("d=128", "mask=causal-tl"), ("d=64", "dv=96")])
def test_a_table_speaks_only_of_what_it_lists(words: tuple[str, ...]) -> None:
    """Another type, mask or head dimension has no published tile here."""
    assert compared(_tiling("h100-sxm", *words)) == ()


def test_a_problem_smaller_than_the_tile_is_another_kernel_s() -> None:
    """Below 128 queries the tables are silent."""
    request = read_request(variant("mha"), ("Nq=64", "Nk=8192", "d=128"))
    assert compared(tiling(request, "flash2", load("h100-sxm"))) == ()


def test_a_step_that_leaves_no_tile_leaves_the_published_one() -> None:
    """Alone it is its own best."""
    question = _tiling("h100-sxm", "d=128", stages=1)
    (found,) = compared(replace(question, choices=Choices(stages=1, step=320)))
    assert (found.rank, found.ratio, found.others) == (1, 1, ())

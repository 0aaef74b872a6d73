"""The ranked tiles as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outputs.layout import Section, Table
from outputs.quantities import grouped, size
from outputs.tile_comparison import OUTSIDE, compared

if TYPE_CHECKING:
    from outputs.published_tiles import PublishedTile
    from outputs.tile_comparison import Comparison
    from outputs.tiles import Tile, Tiling

SHOWN = 10
"""Tiles that the text shows; the JSON has all."""


def report(tiling: Tiling) -> list[Section]:
    """The best tiles, the published ones among them, and what stands between."""
    comparisons = compared(tiling)
    sections = [_question(tiling), _ranking(tiling, comparisons)]
    lines = [line for c in comparisons for line in (f"{c.sentence}.", f"  [{c.published.source}]")]
    sections.append(Section("beside published kernels", [*(lines or [_unpublished(tiling)]), OUTSIDE]))
    return sections


def _unpublished(tiling: Tiling) -> str:
    return (
        f"no published table here speaks of {tiling.account.name} with {tiling.request.operand.name} operands and this head "
        f"dimension and mask on {tiling.machine.id}"
    )


def _question(tiling: Tiling) -> Section:
    values = tiling.request.numbers
    numbers = "  ".join(f"{name} = {grouped(number)}" for name, number in values.items())
    steps = ", ".join(
        f"{name} = {tiling.given[name]}" if name in tiling.given else f"{name} by {step}"
        for name, step in tiling.steps.items()
    )
    rooms = " and ".join(f"{size(room)} of {limit.value}" for limit, room in tiling.rooms.items())
    lines = [
        f"{tiling.request.variant.name}, {tiling.account.name} on {tiling.machine.id}: {numbers}  "
        f"{tiling.request.operand.name}  mask {tiling.request.mask}",
        f"tiles: {steps}; a CTA has {rooms}; {_buffers(tiling.choices.stages)} for each operand that streams, "
        "accumulators in registers",
    ]
    return Section("", lines)


def _buffers(stages: int) -> str:
    return f"{stages} buffer{'s' if stages > 1 else ''}"


def _ranking(tiling: Tiling, comparisons: tuple[Comparison, ...]) -> Section:
    table = Table(
        (
            "rank",
            " x ".join(tiling.extents),
            "SM-side",
            "DRAM",
            "to registers",
            "shared",
            "registers",
            "a step up breaks",
        )
    )
    listed: set[PublishedTile] = set()
    for rank, tile in enumerate(tiling.fitting[:SHOWN], 1):
        same = [c for c in comparisons if c.tile == tile]
        listed.update(c.published for c in same)
        table.add(str(rank), _marked(tile, same), *_cells(tiling, tile))
    for comparison in comparisons:
        if comparison.published not in listed:
            table.add("", _marked(comparison.tile, [comparison]), *_cells(comparison.tiling, comparison.tile))
    count, best = len(tiling.fitting), tiling.fitting[0]
    notes = [
        f"{count:,} tile{'s fit' if count > 1 else ' fits'}, ranked by SM-side bytes, then DRAM bytes, then shared memory; "
        f"compulsory for all: {size(best.compulsory)}",
        f"to registers: operands read from shared memory, once for every {tiling.rows} rows",
    ]
    return Section("tiles that fit, the best first", table, notes)


def _marked(tile: Tile, comparisons: list[Comparison]) -> str:
    return " ".join([str(tile), *(f"({c.published.kernel})" for c in comparisons)])


def _cells(tiling: Tiling, tile: Tile) -> tuple[str, ...]:
    amounts = (tile.sm, tile.dram, tiling.to_registers(tile.sizes), tile.shared, tile.registers)
    return (*("" if a is None else size(a) for a in amounts), _steps_up(tiling, tile))


def _steps_up(tiling: Tiling, tile: Tile) -> str:
    """By limit, the sizes that would break it: ``registers (B_r 512, B_c 32)``."""
    found: dict[str, list[str]] = {}
    for name, (more, broken) in tiling.neighbours(tile).items():
        if broken:
            found.setdefault(" and ".join(limit.value for limit in broken), []).append(f"{name} {more}")
    return "; ".join(f"{limits} ({', '.join(steps)})" for limits, steps in found.items())


def as_json(tiling: Tiling) -> dict[str, Any]:
    """The object that ``derive tiles --json`` prints; see ``schema/tiles.json``."""
    request, choices = tiling.request, tiling.choices
    return {
        "variant": request.variant.name,
        "schedule": tiling.account.name,
        "machine": tiling.machine.id,
        "mask": request.mask,
        "dtype": {group: t.name for group, t in request.types.items()},
        "parameters": {
            name: number if isinstance(number, int) else str(number) for name, number in request.numbers.items()
        },
        "choices": {
            "stages": choices.stages,
            "steps": tiling.steps,
            "rows": tiling.rows,
            "results_shared": choices.results_shared,
        },
        "limits": {limit.value: room for limit, room in tiling.rooms.items()},
        "tiles": [_tile(tiling, tile) for tile in tiling.fitting],
        "published": [_comparison(c) for c in compared(tiling)],
        "outside_the_model": OUTSIDE,
    }


def _tile(tiling: Tiling, tile: Tile) -> dict[str, Any]:
    return {
        "sizes": dict(tile.sizes),
        "bytes": {
            "compulsory": tile.compulsory,
            "sm": tile.sm,
            "dram": tile.dram,
            "shared_to_registers": tiling.to_registers(tile.sizes),
        },
        "shared_memory": tile.shared,
        "registers": tile.registers,
        "next": {
            name: {"size": more, "breaks": [limit.value for limit in broken]}
            for name, (more, broken) in tiling.neighbours(tile).items()
        },
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "kernel": comparison.published.kernel,
        "source": comparison.published.source,
        "stages": comparison.published.stages,
        "results_shared": comparison.published.results_shared,
        "tile": _tile(comparison.tiling, comparison.tile),
        "breaks": [limit.value for limit in comparison.broken],
        "rank": comparison.rank,
        "of": len(comparison.tiling.fitting),
        "best": dict(comparison.best.sizes),
        "ratio": float(comparison.ratio),
        "says": comparison.sentence,
    }

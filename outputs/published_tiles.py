"""Tiles that published kernels use, as data with their source; nothing here is derived."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outputs.tiles import Tiling

DATA = Path(__file__).parent / "data" / "flash_tiles.toml"


@dataclass(frozen=True, eq=False)
class PublishedTile:
    """One line of a published table.

    Attributes:
        kernel: what it is called.
        capabilities: compute capabilities of the devices it is for.
        schedules: names of the loop nests that the kernel runs.
        stages: buffers of each operand tile that streams.
        source: where the line was read.
        d_max: largest head dimension of Q and K; the smallest that holds counts.
        d_v: least and greatest head dimension of V.
        bits: bits an element of the operands.
        masks: names of the masks.
        sizes: tile size by symbol name.
        results_shared: whether P passes through shared memory.
    """

    kernel: str
    capabilities: tuple[Fraction, ...]
    schedules: tuple[str, ...]
    stages: int
    source: str
    d_max: int
    d_v: tuple[int, int]
    bits: int
    masks: tuple[str, ...]
    sizes: Mapping[str, int]
    results_shared: bool


@lru_cache(maxsize=1)
def published_tiles() -> tuple[PublishedTile, ...]:
    """Every line of every table, in the order in which they count."""
    read = tomllib.loads(DATA.read_text(encoding="utf-8"), parse_float=Decimal)
    return tuple(_line(table, line) for table in read["table"] for line in table["tiles"])


def _line(table: Mapping[str, Any], line: Mapping[str, Any]) -> PublishedTile:
    return PublishedTile(
        kernel=table["kernel"],
        capabilities=tuple(Fraction(number) for number in table["compute_capability"]),
        schedules=tuple(table["schedules"]),
        stages=table["stages"],
        source=table["source"],
        d_max=line["d_max"],
        d_v=(line.get("d_v_min", 0), line.get("d_v_max", line["d_max"])),
        bits=line["bits"],
        masks=tuple(line["masks"]),
        sizes={name: size for name, size in line.items() if name.startswith("B_")},
        results_shared=line.get("results_shared", False),
    )


def published_for(tiling: Tiling) -> tuple[PublishedTile, ...]:
    """The published tile of each kernel for this machine, schedule, head dimension, mask and type.

    A table speaks of problems of at least a tile; shorter ones run other kernels.
    """
    capability = tiling.machine.get("compute_capability")
    if "d" not in tiling.account.values:
        return ()
    d = int(tiling.account.values["d"])
    d_v = int(tiling.account.values.get("d_v", d))
    speaking = [
        line
        for line in published_tiles()
        if capability is not None
        and capability.value in line.capabilities
        and tiling.account.name in line.schedules
        and tiling.request.mask in line.masks
        and tiling.request.operand.width * 8 == line.bits
        and line.sizes.keys() == tiling.extents.keys()
        and d <= line.d_max
    ]
    found: dict[str, PublishedTile] = {}
    for line in speaking:
        built_for = min(other.d_max for other in speaking if other.kernel == line.kernel)
        if line.d_max == built_for and line.d_v[0] <= d_v <= line.d_v[1]:
            found.setdefault(line.kernel, line)
    return tuple(x for x in found.values() if all(size <= tiling.extents[name] for name, size in x.sizes.items()))

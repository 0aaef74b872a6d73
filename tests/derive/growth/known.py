"""Schedules and their classes, derived once, and numbers put into them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import sympy as sp

from derive.attention import variant
from derive.buffers import working_set
from derive.exact import value
from derive.growth import Growth, growth
from derive.schedule import Kernel, Schedule
from derive.symbols import M, N, N_k, N_q, d, d_v, h, h_k
from derive.traffic import kernel_traffic
from rules.derivations import plan

TIED = {N_q: N, N_k: N}
SCHEDULES = ("naive", "op-by-op", "square", "row-resident", "flash1", "flash2", "flash2-packed")
KEPT = {"mha": (), "apart": (d_v,), "gqa": (h, h_k), "gqa apart": (d_v, h, h_k)}
"""What is asked about, by the symbols it keeps: heads of their own or shared, d and d_v one or two."""


@cache
def schedule_of(schedule: str, kept: str = "mha", mask: str = "full") -> Schedule:
    """A schedule of attention."""
    return (
        plan(schedule).derive(variant(kept.partition(" ")[0].replace("apart", "mha")).graph(mask, KEPT[kept])).schedule
    )


@cache
def class_of(schedule: str, kept: str = "mha", mask: str = "full") -> Growth:
    """Its class, both lengths as N, in the parameters of every other schedule's."""
    return growth(schedule_of(schedule, kept, mask), TIED, also=(N, d, M))


def moved(schedule: Schedule, kernel: Kernel, numbers: Mapping[str, int]) -> Fraction:
    """Elements that a kernel moves, exactly."""
    return Fraction(value(kernel_traffic(schedule, kernel).total.amount, _untied(numbers)))


def held(schedule: Schedule, kernel: Kernel, numbers: Mapping[str, int]) -> Fraction:
    """Elements of fast memory that a CTA needs, exactly."""
    return Fraction(value(working_set(schedule, kernel).amount, _untied(numbers)))


def tiles_of(kernel: Kernel) -> tuple[sp.Symbol, ...]:
    """Its tile sizes."""
    return tuple(loop.tile for loop in kernel.loops if loop.tile.is_Symbol)


def extent(kernel: Kernel, tile: sp.Symbol, numbers: Mapping[str, int]) -> int:
    """The largest value of a tile."""
    (loop,) = (loop for loop in kernel.loops if loop.tile == tile)
    return int(value(loop.extent, _untied(numbers)))


def _untied(numbers: Mapping[str, int]) -> dict[str, int]:
    return {**numbers, "N_q": numbers["N"], "N_k": numbers["N"]}

"""A published tile beside the tiles that the model allows: does it fit, where does it rank, and what is in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from derive.errors import InfeasibleError
from outputs.quantities import grouped, significant, size
from outputs.tiles import Limit

if TYPE_CHECKING:
    from outputs.published_tiles import PublishedTile
    from outputs.tiles import Tile, Tiling

OUTSIDE = (
    "outside the model: how much of exp hides behind the matrix pipe, registers beyond the accumulators and their allocation "
    "to warps, the second copy of P that overlap needs, barriers and padding in shared memory, several CTAs on one SM, and "
    "accumulators that have a memory of their own"
)
"""What no comparison here can explain."""


@dataclass(frozen=True)
class Comparison:
    """A published tile among all that fit with its own stages.

    Attributes:
        published: the line of the table.
        tiling: the schedule, its choices set to those of the published kernel.
    """

    published: PublishedTile
    tiling: Tiling

    @cached_property
    def tile(self) -> Tile:
        """Its cost in our model."""
        return self.tiling.at({name: self.published.sizes[name] for name in self.tiling.extents})

    @cached_property
    def broken(self) -> tuple[Limit, ...]:
        """The limits it breaks in our model; none where it fits."""
        return self.tiling.broken(self.published.sizes)

    @cached_property
    def others(self) -> tuple[Tile, ...]:
        """Every tile that fits with the published kernel's choices, the best first."""
        try:
            return self.tiling.fitting
        except InfeasibleError:  # a step so large that it leaves none
            return ()

    @property
    def rank(self) -> int:
        """One more than the tiles that fit and move fewer SM-side bytes."""
        return 1 + sum(other.sm < self.tile.sm for other in self.others)

    @property
    def best(self) -> Tile:
        """The tile that moves least."""
        return self.others[0] if self.others else self.tile

    @property
    def ratio(self) -> Fraction:
        """Its SM-side bytes over the least."""
        return Fraction(self.tile.sm, self.best.sm)

    @cached_property
    def widest(self) -> Tile:
        """The largest last size that fits with its other sizes; itself when none is larger."""
        *others, last = self.tile.sizes
        alike = [t for t in self.others if all(t.sizes[n] == self.tile.sizes[n] for n in others)]
        return max([self.tile, *alike], key=lambda t: t.sizes[last])

    @cached_property
    def nearest(self) -> Tile | None:
        """Of the tiles that fit and move less, the one that gives up least of the last size; of those, the best."""
        last = list(self.tile.sizes)[-1]
        better = [t for t in self.others if t.sm < self.tile.sm]
        return max(better, key=lambda t: (t.sizes[last], -t.sm), default=None)

    @property
    def sentence(self) -> str:
        """What the model says of it, computed."""
        rooms = self.tiling.rooms
        used = (
            f"{size(self.tile.shared)} of {size(rooms[Limit.SHARED])} of shared memory and "
            f"{size(self.tile.registers)} of {size(rooms[Limit.REGISTERS])} of registers"
        )
        stages = f"{self.published.stages} stage{'s' if self.published.stages > 1 else ''}"
        through = ", P through shared memory" if self.published.results_shared else ""
        what = f"{self.published.kernel}'s {self.tile} ({stages}{through})"
        if self.broken:
            limits = " and ".join(limit.value for limit in self.broken)
            return f"{what} does not fit in this model: it needs {used}, which breaks {limits}"
        return f"{what} uses {used}{self._padding}; {self._place}{self._room}{self._next}"

    @property
    def _padding(self) -> str:
        """Said where the kernel was built for a larger head dimension than is asked about."""
        d = self.tiling.account.values["d"]
        if d == self.published.d_max:
            return ""
        return f" (were d = {d} not padded to {self.published.d_max}, as the kernel does)"

    @property
    def _place(self) -> str:
        if self.ratio <= 1:
            return "no tile that fits moves fewer SM-side bytes"
        fewer = self.rank - 1
        return (
            f"it moves {significant(self.ratio, 3)} times the SM-side bytes of {self.best}, and {grouped(fewer)} of the "
            + (f"{grouped(len(self.others))} tiles that fit move less{self._in_memory}")
        )

    @property
    def _in_memory(self) -> str:
        """Whether the difference reaches DRAM, where that is known."""
        if self.tile.dram is None or self.best.dram is None:
            return ""
        if self.tile.dram == self.best.dram:
            return f", which the L2 absorbs: both move {size(self.tile.dram)} of DRAM bytes"
        return f"; of DRAM bytes it moves {size(self.tile.dram)}, the other {size(self.best.dram)}"

    @property
    def _room(self) -> str:
        last = list(self.tile.sizes)[-1]
        spare = self.widest.sizes[last] - self.tile.sizes[last]
        step = f"{last} = {self.widest.sizes[last]}"
        if not spare:
            return f"; {step} is the most that fits beside its other sizes"
        same = "moving the same" if self.widest.sm == self.tile.sm else f"moving {_percent(self.widest, self.tile)}"
        return f"; beside its other sizes {step} would fit too, {same}"

    @property
    def _next(self) -> str:
        if self.nearest is None:
            return ""
        last = list(self.tile.sizes)[-1]
        change = self.nearest.sizes[last] - self.tile.sizes[last]
        columns = (
            f"with {abs(change)} columns {'fewer' if change < 0 else 'more'} a step" if change else "as wide a step"
        )
        return f"; {self.nearest} would move {_percent(self.nearest, self.tile)}, {columns}"


def _percent(tile: Tile, than: Tile) -> str:
    """By how much *tile* moves less, or more, than the other."""
    change = 1 - Fraction(tile.sm, than.sm)
    return f"{significant(abs(change) * 100, 2)} % {'less' if change > 0 else 'more'}"


def compared(tiling: Tiling) -> tuple[Comparison, ...]:
    """Each published tile that speaks of this question, compared at its own stages."""
    from outputs.published_tiles import published_for

    return tuple(
        Comparison(
            line,
            replace(
                tiling,
                choices=replace(tiling.choices, stages=line.stages, results_shared=line.results_shared),
                given={},
            ),
        )
        for line in published_for(tiling)
    )

"""The part each symbol plays in a schedule, which says at which numbers a law can be looked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy as sp

from derive.choice import at_most
from derive.growth.parameters import Condition
from derive.growth.tile_bounds import sizes_fit
from derive.mask import Mask
from derive.schedule import Schedule
from derive.symbols import W_l, W_r


@dataclass(frozen=True)
class Roles:
    """What a law's numbers must respect.

    Attributes:
        lengths: queries and keys a head, one symbol where they are one.
        tiles: each tile size with the symbols of what it cuts.
        sizes: sizes of the mask, each with the number of keys that it is at most.
        divides: (divisor, dividend) pairs, such as key/value heads and query heads.
        spread: whether a query's keys stand apart, so that sizes of the mask multiply: W keys a dilation apart.
        packed: where the mask is a list for one length, the lengths of the sequences that are packed into it.
    """

    lengths: tuple[sp.Symbol, ...] = ()
    tiles: Mapping[sp.Symbol, frozenset[sp.Symbol]] = field(default_factory=dict, hash=False)
    sizes: tuple[Condition, ...] = ()
    divides: tuple[tuple[sp.Symbol, sp.Symbol], ...] = ()
    spread: bool = False
    packed: tuple[int, ...] = ()

    @staticmethod
    def of(
        schedule: Schedule,
        alike: Mapping[sp.Symbol, sp.Basic],
        divides: Iterable[tuple[sp.Symbol, sp.Symbol]] = (),
        at_most: Iterable[Condition] = (),
    ) -> Roles:
        """The roles in *schedule*, symbols of *alike* counted as one; what is *at_most* the keys is a size of the mask."""
        mask = schedule.graph.mask
        shared = dict(alike)
        cut: dict[sp.Symbol, set[sp.Symbol]] = {}
        for loop in (x for kernel in schedule.kernels for x in kernel.loops):
            for tile in loop.tile.free_symbols:
                cut.setdefault(tile, set()).update(loop.extent.xreplace(shared).free_symbols)
        named = {i.name: i.extent.xreplace(shared) for e in schedule.graph.einsums for i in e.space}
        ends = [named[n] for n in ("q", "k") if n in named] if mask is None else [mask.rows, mask.columns]
        lengths = dict.fromkeys(x.xreplace(shared) for x in ends if x.xreplace(shared).is_Symbol)
        pairs = dict.fromkeys((a.xreplace(shared), b.xreplace(shared)) for a, b in divides)
        return Roles(
            tuple(lengths),
            {tile: frozenset(symbols) for tile, symbols in cut.items()},
            tuple(dict.fromkeys((*sizes_fit(mask, shared), *((a, b.xreplace(shared)) for a, b in at_most)))),
            tuple((a, b) for a, b in pairs if a != b),
            type(mask) is Mask and any(i.copies != 1 for i in mask.intervals),
        )

    @property
    def span(self) -> sp.Expr:
        """How far the sizes of the mask reach together; of keys before and behind a query, the query's own are none."""
        sizes = [size for size, _ in self.sizes]
        own = sp.Integer(int(bool({W_l, W_r} & set(sizes))))
        return sp.Mul(*sizes) if self.spread else sp.Add(*sizes, own)

    @property
    def fit(self) -> tuple[sp.Basic, ...]:
        """That the sizes of the mask fit the keys together: the regime in which none is cut off at both ends."""
        if not self.sizes:
            return ()
        return (at_most(self.span, self.sizes[0][1]),)

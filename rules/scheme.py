"""A way to share attention among devices: FlashAttention-2's rules with one tile a device, and where tensors lie at home."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.errors import PreconditionError
from derive.graph import Graph
from derive.parallel.link import Device, head_tiles
from derive.parallel.shards import Shards
from derive.rewrite import Derivation, Rule, WherePossible, deduce
from derive.schedule import Schedule
from derive.symbols import R
from rules.derivations import flash2
from rules.plan import Plan
from rules.schedule import fuse
from rules.schedule.launch import launch_loop
from rules.schedule.tile import tile


@dataclass(frozen=True)
class Scheme:
    """What a file in ``rules/parallel`` holds.

    Attributes:
        name: what a person types.
        says: one sentence on what it is.
        reference: where it was published.
        deals: what is dealt to the devices, ``tokens`` or ``heads``.
        streams: whether keys arrive shard by shard while the device works, rather than all before.
        sharded: whether inputs and results lie cut by tokens; else each lies where it is used.
        shards: who holds which tokens.
    """

    name: str
    says: str
    reference: str
    deals: str
    streams: bool = False
    sharded: bool = True
    shards: Shards = Shards()  # noqa: RUF009  (frozen)

    def derive(self, graph: Graph) -> Derivation:
        """The derivation over devices: the same rules as one level down, a tile a device.

        Raises:
            PreconditionError: a rule does not apply, as to a backward pass, or the graph has no heads to deal.
        """
        if not {"q", "k"} <= graph.indices.keys():
            raise PreconditionError(
                f"{self.name} shares queries and keys, and this graph has no pairs of them; try mha or gqa"
            )
        plan = Plan(self.name, self.says, self.reference, flash2.PLAN.algebra, (WherePossible(fuse.ALL),))
        opened = plan.derive(graph)
        return deduce(
            self.name, graph, flash2.PLAN.algebra, (WherePossible(fuse.ALL), *self._cuts(opened.schedule.graph))
        )

    def _cuts(self, graph: Graph) -> tuple[Rule[Schedule], ...]:
        if self.deals == "heads":
            tiles = head_tiles(graph)
            return tuple(rule for i, size in tiles for rule in (tile(i.name, size), launch_loop(i.name)))
        rows, keys = (graph.indices[name].extent / R for name in ("q", "k"))
        streamed = (tile("k", keys),) if self.streams else ()
        return (tile("q", rows), launch_loop("q"), *streamed)

    def device(self, graph: Graph) -> Device:
        """One device of R; raises as ``derive`` does."""
        return Device(self.derive(graph).schedule, ("q", "k") if self.sharded else ())

    def parts(self, graph: Graph) -> tuple[tuple[str, sp.Expr, sp.Expr], ...]:
        """What must divide: (what it is, its size, into how many parts)."""
        if self.deals == "tokens":
            count = self.shards.pieces * R
            return tuple((name, graph.indices[name].extent, count) for name in ("q", "k"))
        cuts = [(i.name, i.extent, i.extent / size) for i, size in head_tiles(graph)]
        tokens = [(name, graph.indices[name].extent, R) for name in ("q", "k") if self.sharded]
        return (*cuts, *tokens)

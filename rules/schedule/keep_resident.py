r"""Let the cache between HBM and the SMs serve what is read again.

    HBM reads of K, V  =  X F  while H F <= C_L2,  else  I F      (X slices of F bytes, H live, I wave-slice meetings)

Precondition  the grid loops that carry a shared tensor are neighbours, so that its readers are issued in runs; shared
              tensors are only read.
Proof         LRU keeps a line while fewer than C_L2 other bytes are touched between two uses; within a wave all sharers use
              a tile in the same step, and between waves at most the H live slices are touched.
Effect        the K and V re-reads become cache hits: HBM sees each slice once instead of once a row tile.
Reference     the wave model of this project, replayed by an LRU cache; compare arXiv:2601.16032 (sawtooth) and
              arXiv:2511.02132 (private caches).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import sympy as sp

from derive.page_tables import as_read
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Residency, Schedule
from derive.sharing import is_shared, readers_run_together, sharings
from derive.symbols import C_L2
from derive.traffic import is_accumulator
from rules.schedule.examples import flash, fused, loop, streaming

Match = tuple[Kernel, ...]
ONE_CACHE = sp.Integer(1)


def eligible(schedule: Schedule, kernel: Kernel) -> tuple[str, ...]:
    """Tensors of *kernel* that may be served by the cache: read by several CTAs, read again by one, or just written.

    Neither what rows are gathered from nor their positions: which rows are read again, and when, is data.
    """
    found = []
    for tensor in schedule.tensors_of(kernel):
        read_in = tensor in schedule.inputs_of(kernel)
        earlier = tensor.name in schedule.kernel_of and read_in
        again = any(not x.carried_by(as_read(tensor, schedule.nodes(kernel))) for x in kernel.loops)
        if tensor in schedule.selecting_of(kernel):
            continue
        added = is_accumulator(schedule, kernel, tensor) or tensor in schedule.added_up_of(kernel)
        if earlier or (again and (read_in or added)):
            found.append(tensor.name)
    states = (t.name for t in schedule.moving_states_of(kernel) if t not in schedule.outputs_of(kernel))
    return tuple(dict.fromkeys((*found, *states)))


def keep_resident(*, sawtooth: bool = False, caches: sp.Expr = ONE_CACHE) -> Rule[Schedule]:
    """The rule for the whole schedule, one object for each choice, so that derivations that take it compare equal.

    Args:
        sawtooth: alternate the direction in which waves sweep the keys.
        caches: how many private caches there are, each with a copy of what its CTAs read.
    """
    return _rule(sawtooth, caches)


@cache
def _rule(sawtooth: bool, caches: sp.Expr) -> Rule[Schedule]:
    def shape(schedule: Schedule) -> Iterator[Match]:
        found = tuple(k for k in schedule.kernels if k.residency is None and eligible(schedule, k))
        if found:
            yield found

    def rewrite(schedule: Schedule, match: Match) -> Schedule:
        kept = {k: k.with_(residency=Residency(eligible(schedule, k), sawtooth, caches)) for k in match}
        return Schedule(schedule.graph, tuple(kept.get(k, k) for k in schedule.kernels))

    return Rule(
        name="keep-resident",
        claim="re-reads hit the L2 while the slices that are live together fit"
        + ("; odd waves sweep backwards" if sawtooth else ""),
        reference="wave model, checked by LRU replay; arXiv:2601.16032",
        shape=shape,
        preconditions=(
            Precondition(
                says="the grid loops that carry a shared tensor are neighbours, so that its readers are issued in runs",
                holds=_readers_run_together,
                counterexample=lambda: _scattered(),
            ),
        ),
        rewrite=rewrite,
        example=flash,
        condition=_fits,
        options=", ".join(filter(None, ("sawtooth" if sawtooth else "", f"{caches} caches" if caches != 1 else ""))),
    )


def _fits(schedule: Schedule) -> sp.Basic:
    """The live slices fit: ``H F <= C_L2``."""
    found = [sharings(schedule, kernel) for kernel in schedule.kernels]
    live = (sp.Add(*(s.live_bytes for s in groups)) for groups in found if groups)
    # no size decides these, and to ask all of them takes long
    return sp.And(*(sp.Le(amount, C_L2, evaluate=False) for amount in live))


def _readers_run_together(schedule: Schedule, match: Match) -> bool:
    for kernel in match:
        read = (t for t in schedule.inputs_of(kernel) if t not in schedule.selecting_of(kernel))
        inputs = [as_read(t, schedule.nodes(kernel)) for t in read]
        shared = [t for t in inputs if is_shared(kernel, t)]
        if not all(readers_run_together(kernel, t) for t in shared):
            return False
    return True


def _scattered() -> Schedule:
    """Query tiles between the batch and the head loop: K is carried by the two around them."""
    graph = streaming()
    grid = (loop(graph, name, grid=True) for name in ("b", "q", "h"))
    return fused(graph, *grid, loop(graph, "k"))


FORWARD = keep_resident()
SAWTOOTH = keep_resident(sawtooth=True)
RULES = (FORWARD, SAWTOOTH)

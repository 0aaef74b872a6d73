"""Give each key tile to a CTA of its own, although its CTAs meet in a sum: each adds its share to what stands in memory.

    for t in tiles of k: dQs += share(t)   =   grid t in tiles of k: dQs += share(t), in any order

Precondition  what the keys are summed into is summed plainly, and no Einsum of the kernel reads it; every result without such
              a sum in it carries the keys, or stays in the kernel and does not depend on them.
Proof         memory is zero before the first share, and addition is associative and commutative: any order of the CTAs gives
              the same sum over the reals; in floating point the order shows in the last digits, from run to run.
Effect        T_c CTAs a head instead of one; every share is a read and a write of memory, |dQs| T_c each way, after |dQs| zeros
              are written; nothing is kept from one key tile to the next.
Reference     Dao 2023, arXiv:2307.08691, section 3.2 (backward: parallel over key blocks, atomic adds to dQ).
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Reduce
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import N_k, N_q, b, d
from rules.schedule.examples import loop, streaming
from rules.schedule.finish_after import KEYS

Match = tuple[Kernel, Loop]


def shape(schedule: Schedule) -> Iterator[Match]:
    """Kernels whose outermost sequential loop runs over keys that something is summed over, in memory."""
    for kernel in schedule.kernels:
        outermost = kernel.sequential[:1]
        if not outermost or [i.name for i in outermost[0].indices] != [KEYS] or not kernel.in_memory:
            continue
        if any(outermost[0].indices[0] in e.reduced for e in schedule.nodes(kernel)):
            yield kernel, outermost[0]


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """The loop moves to the grid, innermost there."""
    kernel, keys = match
    grid = (*kernel.grid, Loop(keys.indices, keys.tile, grid=True))
    rest = tuple(x for x in kernel.sequential if x is not keys)
    return schedule.replace((kernel,), kernel.with_(loops=(*grid, *rest), atomic=True))


def _sums_are_plain(schedule: Schedule, match: Match) -> bool:
    kernel, keys = match
    summed = [e for e in schedule.nodes(kernel) if keys.indices[0] in e.reduced]
    return all(e.reduce is Reduce.SUM and e.rescale is None for e in summed)


def _nobody_waits(schedule: Schedule, match: Match) -> bool:
    kernel, keys = match
    sums = {e.output.name for e in schedule.nodes(kernel) if keys.indices[0] in e.reduced and e.reduce is Reduce.SUM}
    plain = {name for name in sums if schedule.graph.producers[name].rescale is None}
    return not any(plain & {t.name for t in e.inputs} for e in schedule.nodes(kernel))


def _others_are_apart(schedule: Schedule, match: Match) -> bool:
    kernel, keys = match
    summed: set[str] = set()
    for e in schedule.nodes(kernel):
        if keys.indices[0] in e.reduced or summed & {t.name for t in e.inputs}:
            summed.add(e.output.name)
    others = [name for name in kernel.einsums if name not in summed]
    return all(schedule.is_independent(name, kernel, keys.indices) for name in others)


def _in_memory(*, waits: bool = False, running: bool = False, leaves: bool = False) -> Schedule:
    """Sums over queries and, in memory, over keys; with what waits for one of them, or leaves a result of the queries alone.

    *running* is a forward pass with keys outside, whose sums follow a running maximum.
    """
    if running:
        graph = streaming()
        *first, last = (e.output.name for e in graph.einsums)
        loops = (loop(graph, KEYS), loop(graph, "q"))
        return Schedule(graph, (Kernel(tuple(first), loops, in_memory=True), Kernel((last,))))
    text = """
        S[q,k] = sum[d] Q[q,d] * K[k,d]
        A[q,d] = sum[k] S[q,k] * K[k,d]
        G[k,d] = sum[q] S[q,k] * Q[q,d]
    """
    text += "Z[q,d] = exp(A[q,d])\n" if waits else ""
    text += "R[q] = exp(y[q])\n" if leaves else ""
    outputs = ("A", "G", *(("Z",) if waits else ()), *(("R",) if leaves else ()))
    graph = cascade(text, {"q": N_q, "k": N_k, "d": d}, outputs=outputs, width=b)
    names = tuple(e.output.name for e in graph.einsums)
    return Schedule(graph, (Kernel(names, (loop(graph, KEYS), loop(graph, "q")), in_memory=True),))


ATOMIC: Rule[Schedule] = Rule(
    name="add-across-ctas",
    claim="each key tile is a CTA of its own; CTAs add their shares of sums over the keys to memory, atomically",
    reference="arXiv:2307.08691, section 3.2",
    shape=shape,
    preconditions=(
        Precondition(
            says="what is reduced over the keys is a plain sum, so that shares may be added in any order",
            holds=_sums_are_plain,
            counterexample=lambda: _in_memory(running=True),
        ),
        Precondition(
            says="no Einsum of the kernel reads such a sum, which is whole only when all CTAs are done",
            holds=_nobody_waits,
            counterexample=lambda: _in_memory(waits=True),
        ),
        Precondition(
            says="every result without such a sum in it carries the keys, or stays in the kernel and does not depend on them",
            holds=_others_are_apart,
            counterexample=lambda: _in_memory(leaves=True),
        ),
    ),
    rewrite=rewrite,
    example=_in_memory,
)

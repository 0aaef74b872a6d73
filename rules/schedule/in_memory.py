"""Keep partial results in memory throughout, as FlashAttention-1 does.

    O, l, m written once and read back at every later visit   ->   read and written at every visit

Precondition  some partial result leaves the SM at all: a loop that carries it stands inside the loop that reduces it.
Proof         memory holds the units of the reductions before the first visit, so reading them changes nothing.
Effect        |T| f reads instead of |T| (f - 1); writing the units beforehand is not counted, as in the paper.
Reference     Dao et al. 2022, arXiv:2205.14135, algorithm 1, line 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Schedule
from derive.traffic import is_accumulator
from rules.schedule.examples import flash, fused, loop, streaming


def shape(schedule: Schedule) -> Iterator[Kernel]:
    """Kernels with a sequential reduction that do not keep it in memory yet."""
    for kernel in schedule.kernels:
        reduces = any(is_accumulator(schedule, kernel, t) for t in schedule.tensors_of(kernel))
        if reduces and not kernel.in_memory:
            yield kernel


def rewrite(schedule: Schedule, kernel: Kernel) -> Schedule:
    """Mark the kernel."""
    return schedule.replace((kernel,), kernel.with_(in_memory=True))


def _spills(schedule: Schedule, kernel: Kernel) -> bool:
    for tensor in schedule.tensors_of(kernel):
        if not is_accumulator(schedule, kernel, tensor):
            continue
        reduced = schedule.graph.producers[tensor.name].reduced
        reducing = [n for n, x in enumerate(kernel.loops) if any(i in reduced for i in x.indices)]
        carrying = [n for n, x in enumerate(kernel.loops) if not x.grid and x.carried_by(tensor)]
        if carrying and max(carrying) > min(reducing):
            return True
    return False


def _keys_outside() -> Schedule:
    graph = streaming()
    return fused(graph, loop(graph, "k"), loop(graph, "q"))


RULE: Rule[Schedule] = Rule(
    name="partials-in-memory",
    claim="partial results live in memory from the start: read and written at every visit",
    reference="arXiv:2205.14135, algorithm 1",
    shape=shape,
    preconditions=(
        Precondition(
            says="some partial result leaves the SM: a loop that carries it stands inside the loop that reduces it",
            holds=_spills,
            counterexample=flash,
        ),
    ),
    rewrite=rewrite,
    example=_keys_outside,
)

"""Finish what waits for a whole sum over the keys in a kernel of its own, after the one that sums.

    one kernel: dQs = sum_k dS K;  dQ = dQs c   =   kernel 1: dQs;  kernel 2: dQ

Precondition  the kernel has no loops yet: cutting it then changes no order of points.
Proof         what reads such a sum, at any remove, is read by nothing that is left: the first kernel is complete in itself.
Effect        the sum crosses memory once more each way; in exchange the CTAs that sum need not wait for each other.
Reference     Dao 2023, arXiv:2307.08691, section 3.2; Dao-AILab/flash-attention, flash_bwd_preprocess_kernel.h
              (convert_dQ: a kernel that scales and converts the accumulated dQ).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Schedule
from rules.schedule.examples import backward_streaming, fused, loop

Match = tuple[Kernel, tuple[str, ...]]
KEYS = "k"


def shape(schedule: Schedule) -> Iterator[Match]:
    """A kernel, and those of its Einsums that wait for a sum over the keys and pair nothing with them."""
    for kernel in schedule.kernels:
        nodes = schedule.nodes(kernel)
        waiting = {e.output.name for e in nodes if any(i.name == KEYS for i in e.reduced)}
        late: list[str] = []
        for e in nodes:
            if waiting & {t.name for t in e.inputs}:
                waiting.add(e.output.name)
                late.append(e.output.name)
        if late and not any(i.name == KEYS for e in nodes if e.output.name in late for i in e.space):
            yield kernel, tuple(late)


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """Two kernels, the second right behind the first."""
    kernel, late = match
    first = Kernel(tuple(name for name in kernel.einsums if name not in late))
    at = schedule.kernels.index(kernel)
    kernels = (*schedule.kernels[:at], first, Kernel(late), *schedule.kernels[at + 1 :])
    return replace(schedule, kernels=kernels)


def summed_apart(*, tiled: bool = False) -> Schedule:
    """The backward pass in one kernel, with its keys tiled or without loops."""
    graph = backward_streaming()
    return fused(graph, loop(graph, KEYS)) if tiled else fused(graph)


RULE: Rule[Schedule] = Rule(
    name="finish-after",
    claim="what waits for whole sums over the keys is finished by a kernel of its own",
    reference="arXiv:2307.08691, section 3.2",
    shape=shape,
    preconditions=(
        Precondition(
            says="the kernel has no loops yet, so cutting it changes no order of points",
            holds=lambda _, match: not match[0].loops,
            counterexample=lambda: summed_apart(tiled=True),
        ),
    ),
    rewrite=rewrite,
    example=summed_apart,
)

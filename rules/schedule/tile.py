"""Run a kernel over tiles of an index, one tile after another.

    for all x in 0..N   =   for t in 0..ceil(N/B):  for all x in tile t

Precondition  the kernel needs no more than one pass over the index: what a tile has reduced is never needed, complete, by
              another point of the same tile.
Proof         with one pass, every Einsum at tile t needs only tiles up to t; sums and maxima are associative, and a rescaled
              sum is repaired when its maximum rises.
Effect        a tensor that carries the index needs a tile of fast memory instead of its whole extent.
Reference     Nayak et al. 2024, arXiv:2406.10491, section 3; Dao et al. 2022, arXiv:2205.14135, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from derive.errors import IllFormedError
from derive.graph import Graph
from derive.notation import cascade
from derive.passes import passes
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B_c, B_r, N_k, N_q, b
from rules.schedule.examples import fused, streaming, two_pass


def tile(index: str, size: sp.Expr) -> Rule[Schedule]:
    """The rule that tiles *index* by *size* as the innermost sequential loop."""

    def shape(schedule: Schedule) -> Iterator[Kernel]:
        for kernel in schedule.kernels:
            if (
                any(index in {i.name for i in e.space} for e in schedule.nodes(kernel))
                and kernel.loop_of(index) is None
            ):
                yield kernel

    def rewrite(schedule: Schedule, kernel: Kernel) -> Schedule:
        loop = Loop((schedule.graph.indices[index],), size)
        return schedule.replace((kernel,), kernel.with_(loops=(*kernel.loops, loop)))

    def one_pass(schedule: Schedule, kernel: Kernel) -> bool:
        try:
            return passes(kernel_graph(schedule, kernel), index) <= 1
        except IllFormedError:  # a rescaled sum whose maximum another kernel makes cannot stream here
            return False

    streamed = index == "k"
    return Rule(
        name="tile",
        claim=f"{index} is run over in tiles of {size}",
        reference="arXiv:2406.10491, section 3; arXiv:2205.14135, section 3.1",
        shape=shape,
        preconditions=(
            Precondition(
                says=f"the kernel needs one pass over {index}",
                holds=one_pass,
                counterexample=lambda: fused(two_pass() if streamed else _needs_two_passes(index)),
            ),
        ),
        rewrite=rewrite,
        example=lambda: fused(streaming()),
        options=f"{index} by {size}",
    )


def kernel_graph(schedule: Schedule, kernel: Kernel) -> Graph:
    """The part of the graph that *kernel* runs, as a graph of its own."""
    return Graph(schedule.nodes(kernel), tuple(t.name for t in schedule.outputs_of(kernel)))


def _needs_two_passes(index: str) -> Graph:
    """A softmax over *index* instead of k: its result waits for the sum over *index*."""
    kept = "k" if index == "q" else "q"
    text = f"""
        E[q,k] = exp(S[q,k])
        l[{kept}] = sum[{index}] E[q,k]
        P[q,k] = E[q,k] / l[{kept}]
    """
    return cascade(text, {"q": N_q, "k": N_k}, outputs=("P",), width=b)


QUERIES = tile("q", B_r)
KEYS = tile("k", B_c)
RULES = (QUERIES, KEYS)

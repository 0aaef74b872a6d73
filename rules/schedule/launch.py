"""Give each trip of a loop to a CTA of its own.

    for t in 0..T: body(t)   =   grid t in 0..T: body(t), in any order and at once

Precondition  every Einsum of the kernel carries the index, or stays in the kernel and does not depend on it, so that no two
              trips meet in one result.
Proof         trips then read inputs and write disjoint parts of every result: they commute.
Effect        T CTAs instead of T trips; each has a fast memory of its own, so nothing is kept from trip to trip.
Reference     Dao 2023, arXiv:2307.08691, section 3.2 (parallelism over the sequence length).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy as sp

from derive.einsum import Index
from derive.graph import Graph
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import N_k, N_q, b, d_v, h, n_s
from rules.schedule.examples import fused, loop, streaming

Match = tuple[Kernel, tuple[Index, ...]]


def parallel_indices(schedule: Schedule, kernel: Kernel) -> tuple[Index, ...]:
    """Indices over which CTAs can run without meeting in any result of *kernel*, and in no order, outermost first."""
    nodes = schedule.nodes(kernel)
    every = dict.fromkeys(i for e in reversed(nodes) for i in e.output.indices)
    free = (i for i in every if i.name not in {e.previous for e in nodes})
    return tuple(i for i in free if all(schedule.is_independent(name, kernel, (i,)) for name in kernel.einsums))


def row_indices(schedule: Schedule, kernel: Kernel) -> tuple[Index, ...]:
    """The indices of the kernel's pairs, such as those of S[b, h, q, k]; of its last result where it has no pairs."""
    nodes = schedule.nodes(kernel)
    pairs = (e.output.indices for e in nodes if {"q", "k"} <= {i.name for i in e.output.indices})
    return next(pairs, nodes[-1].output.indices)


def launch_loop(index: str, *, without: str = "", example: Callable[[], Graph] = streaming) -> Rule[Schedule]:
    """The rule that puts the sequential loop over *index* on the grid, innermost there; in kernels that lack *without*.

    *example* makes a graph in which it may.
    """

    def shape(schedule: Schedule) -> Iterator[Kernel]:
        for kernel in schedule.kernels:
            found = kernel.loop_of(index)
            lacks = not any(without in {i.name for i in e.space} for e in schedule.nodes(kernel))
            if found is not None and not found.grid and lacks:
                yield kernel

    def rewrite(schedule: Schedule, kernel: Kernel) -> Schedule:
        moved = kernel.loop_of(index)
        assert moved is not None
        rest = tuple(x for x in kernel.sequential if x is not moved)
        grid = (*kernel.grid, Loop(moved.indices, moved.tile, grid=True))
        return schedule.replace((kernel,), kernel.with_(loops=(*grid, *rest)))

    def independent(schedule: Schedule, kernel: Kernel) -> bool:
        return index in {i.name for i in parallel_indices(schedule, kernel)}

    return Rule(
        name="launch",
        claim=f"each tile of {index} is a CTA of its own",
        reference="arXiv:2307.08691, section 3.2",
        shape=shape,
        preconditions=(
            Precondition(
                says=f"every Einsum of the kernel carries {index} or is private and independent of it, "
                "so that no two CTAs meet in one result",
                holds=independent,
                counterexample=lambda: _tiled(_reduced_over(index, "e" if without else ""), index),
            ),
        ),
        rewrite=rewrite,
        example=lambda: _tiled(example(), index),
        options=f"{index}, where there is no {without}" if without else index,
    )


def _tiled(graph: Graph, index: str) -> Schedule:
    """All of *graph* in one kernel with a loop over *index*."""
    return fused(graph, loop(graph, index))


def _reduced_over(index: str, kept: str = "") -> Graph:
    """A column sum or a row sum: its result does not carry *index*."""
    kept = kept or ("k" if index == "q" else "q")
    text = f"l[{kept}] = sum[{index}] S[{index},{kept}]"
    return cascade(text, {"q": N_q, "k": N_k, "e": d_v, "s": n_s}, outputs=("l",), width=b)


def _row_sum() -> Graph:
    """The row sums of a backward pass, which no key takes part in."""
    return cascade("D[h,q] = sum[e] dO[h,q,e] * O[h,q,e]", {"h": h, "q": N_q, "e": d_v}, outputs=("D",), width=b)


def _sums_of_parts() -> Graph:
    """Sums over the keys, a part of them apart from the others."""
    text = "A_s[s,q,e] = sum[k] P[q,s,k] * V[s,k,e]"
    return cascade(text, {"s": n_s, "q": N_q, "k": N_k / n_s, "e": d_v}, outputs=("A_s",), width=b)


def _heads(schedule: Schedule, kernel: Kernel) -> tuple[Index, ...]:
    """Indices that stand before the queries, of the kernel's pairs or else of its result, and have no loop yet."""
    found: list[Index] = []
    for index in row_indices(schedule, kernel):
        if index.name == "q":
            return tuple(found)
        if kernel.loop_of(index.name) is None:
            found.append(index)
    return ()


def _shape_heads(schedule: Schedule) -> Iterator[Match]:
    for kernel in schedule.kernels:
        if kernel.loops and (found := _heads(schedule, kernel)):
            yield kernel, found


def _rewrite_heads(schedule: Schedule, match: Match) -> Schedule:
    kernel, indices = match
    loops = tuple(Loop((i,), sp.Integer(1), grid=True) for i in indices)
    return schedule.replace((kernel,), kernel.with_(loops=(*loops, *kernel.loops)))


def _heads_are_independent(schedule: Schedule, match: Match) -> bool:
    kernel, indices = match
    return set(indices) <= set(parallel_indices(schedule, kernel))


def _mixed_heads() -> Schedule:
    """Scores shifted by their maximum over the heads: one head's result needs the others'."""
    text = """
        m[q] = max[h] S[h,q]
        X[h,q] = S[h,q] - m[q]
    """
    graph = cascade(text, {"h": h, "q": N_q}, outputs=("X",), width=b)
    return fused(graph, loop(graph, "q"))


HEADS: Rule[Schedule] = Rule(
    name="launch-heads",
    claim="each head of each sequence is run by CTAs of its own, heads outermost in the grid",
    reference="arXiv:2205.14135, section 3.1",
    shape=_shape_heads,
    preconditions=(
        Precondition(
            says="every Einsum of the kernel carries the head or is private and independent of it, "
            "so that no head needs another's result",
            holds=_heads_are_independent,
            counterexample=lambda: _mixed_heads(),
        ),
    ),
    rewrite=_rewrite_heads,
    example=lambda: fused(streaming(), loop(streaming(), "q"), loop(streaming(), "k")),
)
QUERIES = launch_loop("q")
ROWS = launch_loop("q", without="k", example=_row_sum)
PARTS = launch_loop("s", example=_sums_of_parts)
RULES = (QUERIES, ROWS, HEADS, PARTS)

"""Fill a tile with the heads of one query, where each query has keys of its own that its heads share.

    for q: for r: body   =   grid q by 1, grid r by B_r: body      rows of a tile are heads

Precondition  every Einsum of the kernel carries these indices, or stays in the kernel and does not depend on them, so that no
              two CTAs meet in one result.
Proof         a row of scores belongs to one (query, head) pair; which rows share a tile changes no row.
Effect        the keys of a query are read once for B_r of its heads; rows of two queries would have none in common.
Reference     Yuan et al. 2025, arXiv:2502.11089, section 3.4 (group-centric loading); DeepSeek-AI 2025, FlashMLA,
              github.com/deepseek-ai/FlashMLA (64 heads of a query a CTA).
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from derive.einsum import Einsum, Index
from derive.flops import is_contraction
from derive.graph import Graph
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B_r, N_k, N_q, b, d, h
from rules.schedule.examples import fused
from rules.schedule.launch import parallel_indices

Match = tuple[Kernel, tuple[Index, ...], Index]


def shape(schedule: Schedule) -> Iterator[Match]:
    """Kernels without loops that multiply rows of several heads by keys of one query, and sum over no heads."""
    for kernel in schedule.kernels:
        nodes = schedule.nodes(kernel)
        products = (e for e in nodes if not kernel.loops and is_contraction(e))
        found = next((around for e in products if (around := _around(e)) is not None), None)
        if found is not None and not any(found[1] in e.reduced for e in nodes):
            yield (kernel, *found)


def _around(product: Einsum) -> tuple[tuple[Index, ...], Index] | None:
    """The indices that go to the grid one by one, the query last, and the head that shares the keys of a query."""
    names = [i.name for i in product.output.indices]
    if "q" not in names:
        return None
    outside = product.output.indices[: names.index("q")]
    for keys in product.inputs:
        shared = [i for i in outside if i not in keys.indices]
        query = product.output.indices[len(outside)]
        if shared and (query in keys.indices or query.extent == 1):
            return (*(i for i in outside if i is not shared[-1]), query), shared[-1]
    return None


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """A grid over queries, one each, and over tiles of their heads."""
    kernel, single, heads = match
    loops = (*(Loop((i,), sp.Integer(1), grid=True) for i in single), Loop((heads,), B_r, grid=True))
    return schedule.replace((kernel,), kernel.with_(loops=loops))


def _independent(schedule: Schedule, match: Match) -> bool:
    kernel, single, heads = match
    return {*single, heads} <= set(parallel_indices(schedule, kernel))


def _own_keys(*, made: bool = False) -> Schedule:
    """Scores against keys of each query's own; or of keys that are made first and left, whichever head makes them."""
    text = "S[h,q,k] = sum[d] Q[h,q,d] * K[q,k,d]"
    if made:
        text = "K[q,k,d] = exp(G[q,k,d])\n" + text
    graph: Graph = cascade(text, {"h": h, "q": N_q, "k": N_k, "d": d}, outputs=("S", *("K",) * made), width=b)
    return fused(graph)


RULE: Rule[Schedule] = Rule(
    name="rows-of-heads",
    claim="a CTA for each query and B_r of its heads: the keys of a query are read once for all heads of a tile",
    reference="arXiv:2502.11089, section 3.4",
    shape=shape,
    preconditions=(
        Precondition(
            says="every Einsum of the kernel carries these indices or is private and independent of them, "
            "so that no two CTAs meet in one result",
            holds=_independent,
            counterexample=lambda: _own_keys(made=True),
        ),
    ),
    rewrite=rewrite,
    example=_own_keys,
)

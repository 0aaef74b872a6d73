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

from collections.abc import Callable, Iterator
from dataclasses import replace

import sympy as sp

from derive.einsum import Map
from derive.errors import IllFormedError
from derive.graph import Graph
from derive.notation import cascade
from derive.passes import passes
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B_c, B_r, N_k, N_p, N_q, b, d, h, h_k, n_s
from rules.schedule.examples import backward_streaming, fused, loop, streaming, two_pass
from rules.schedule.fuse_pairs import runs_over_pairs
from rules.schedule.launch import row_indices

Match = tuple[Kernel, str]


def tile(
    index: str,
    size: sp.Expr,
    *,
    example: Callable[[], Graph] = streaming,
    two_passes: Callable[[], Graph] | None = None,
    beside: str = "",
) -> Rule[Schedule]:
    """The rule that tiles *index* by *size* as the innermost sequential loop, first where queries meet keys.

    A selection stays one operator.

    Args:
        index: what is run over.
        size: how much of it at a time.
        example: a graph that needs one pass over it.
        two_passes: one that needs two; by default a softmax over it.
        beside: only in kernels that run over this index too.
    """

    def shape(schedule: Schedule) -> Iterator[Kernel]:
        for kernel in sorted(schedule.kernels, key=lambda k: not any(map(runs_over_pairs, schedule.nodes(k)))):
            nodes = schedule.nodes(kernel)
            selects = any(e.map is Map.TOP for e in nodes)
            over = {i.name for e in nodes for i in e.space}
            if {index, beside or index} <= over and kernel.loop_of(index) is None and not selects:
                yield kernel

    def rewrite(schedule: Schedule, kernel: Kernel) -> Schedule:
        loop = Loop((schedule.graph.indices[index],), size)
        return schedule.replace((kernel,), kernel.with_(loops=(*kernel.loops, loop)))

    def one_pass(schedule: Schedule, kernel: Kernel) -> bool:
        return _needs_one_pass(schedule, kernel, index)

    return Rule(
        name="tile",
        claim=f"{index} is run over in tiles of {size}",
        reference="arXiv:2406.10491, section 3; arXiv:2205.14135, section 3.1",
        shape=shape,
        preconditions=(
            Precondition(
                says=f"the kernel needs one pass over {index}",
                holds=one_pass,
                counterexample=lambda: fused(two_passes() if two_passes else _needs_two_passes(index)),
            ),
        ),
        rewrite=rewrite,
        example=lambda: fused(example()),
        options=f"{index} by {size}",
    )


def _needs_one_pass(schedule: Schedule, kernel: Kernel, index: str) -> bool:
    try:
        return passes(kernel_graph(schedule, kernel), index) <= 1
    except IllFormedError:  # a rescaled sum whose maximum another kernel makes cannot stream here
        return False


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


def _shared_heads(schedule: Schedule) -> Iterator[Match]:
    """Heads of the kernel's pairs that some result of it sums over."""
    for kernel in schedule.kernels:
        nodes = schedule.nodes(kernel)
        for index in row_indices(schedule, kernel):
            if index.name == "q":
                break
            if kernel.loops and kernel.loop_of(index.name) is None and any(index in e.reduced for e in nodes):
                yield kernel, index.name


def _loop_over_heads(schedule: Schedule, match: Match) -> Schedule:
    kernel, name = match
    heads = Loop((schedule.graph.indices[name],), sp.Integer(1))
    return schedule.replace((kernel,), kernel.with_(loops=(*kernel.loops, heads)))


def _one_pass_over_heads(schedule: Schedule, match: Match) -> bool:
    return _needs_one_pass(schedule, *match)


def _grouped_backward(*, across: bool = False) -> Schedule:
    """The backward pass of grouped-query attention, keys tiled; or a softmax over the heads of a group."""
    if not across:
        graph = backward_streaming(grouped=True)
        return fused(graph, loop(graph, "k"))
    text = """
        E[g,r,k] = exp(S[g,r,k])
        l[g,k] = sum[r] E[g,r,k]
        P[g,r,k] = E[g,r,k] / l[g,k]
    """
    graph = cascade(text, {"g": h_k, "r": h / h_k, "k": N_k}, outputs=("P",), width=b)
    return fused(graph, loop(graph, "k"))


SHARED_HEADS: Rule[Schedule] = Rule(
    name="loop-over-shared-heads",
    claim="heads whose results are summed are run one after another",
    reference="arXiv:2307.08691, section 3.1.2",
    shape=_shared_heads,
    preconditions=(
        Precondition(
            says="the kernel needs one pass over these heads",
            holds=_one_pass_over_heads,
            counterexample=lambda: _grouped_backward(across=True),
        ),
    ),
    rewrite=_loop_over_heads,
    example=_grouped_backward,
)


def _prefix(*, two_passes: bool = False) -> Graph:
    """The row sum of exponentials over shared keys, relative to their maximum in two passes."""
    text = "E[q,p] = exp(S[q,p])\nl[q] = sum[p] E[q,p]"
    if two_passes:
        text = "m[q] = max[p] S[q,p]\nX[q,p] = S[q,p] - m[q]\nE[q,p] = exp(X[q,p])\nl[q] = sum[p] E[q,p]"
    return cascade(text, {"q": N_q, "p": N_p}, outputs=("l",), width=b)


def _scored(*, two_passes: bool = False) -> Graph:
    """The scores of an indexer; or divided by their sum over all keys."""
    text = "I[q,j] = sum[i] w[q,i] * R[i,q,j]"
    if two_passes:
        text += "\nl[q] = sum[j] I[q,j]\nP[q,j] = I[q,j] / l[q]"
    extents = {"q": N_q, "j": N_k, "i": h}
    return cascade(text, extents, outputs=("P" if two_passes else "I",), width=b)


def _blocks(*, two_passes: bool = False) -> Graph:
    """The sum of what stands in selected blocks; or divided by it."""
    text = "l[q] = sum[t,y] E[q,t,y]"
    if two_passes:
        text += "\nP[q,t,y] = E[q,t,y] / l[q]"
    extents = {"q": N_q, "t": N_k, "y": d}
    return cascade(text, extents, outputs=("P" if two_passes else "l",), width=b)


def _merge(*, repaired: bool) -> Graph:
    """The sums of several parts, each relative to its own maximum, added up; repaired as the maximum rises, or not."""
    text = """
        m[q]   = max[s] m_s[s,q]
        X[s,q] = m_s[s,q] - m[q]
        w[s,q] = exp(X[s,q])
        l[q]   = sum[s] w[s,q] * l_s[s,q]
    """
    graph = cascade(text, {"q": N_q, "s": n_s}, outputs=("l",), width=b)
    total = graph.producers["l"]
    return graph.replace((total,), (replace(total, rescale="m"),)) if repaired else graph


QUERIES = tile("q", B_r)
KEYS = tile("k", B_c, two_passes=two_pass)
PREFIX = tile("p", B_c, example=_prefix, two_passes=lambda: _prefix(two_passes=True))
BLOCKS = tile("t", sp.Integer(1), example=_blocks, two_passes=lambda: _blocks(two_passes=True))
INDEXED = tile("j", B_c, example=_scored, two_passes=lambda: _scored(two_passes=True))
PARTS = tile("s", sp.Integer(1), example=lambda: _merge(repaired=True), two_passes=lambda: _merge(repaired=False))
PARTS_OF_ROWS = replace(
    tile(
        "s", sp.Integer(1), beside="q", example=lambda: _merge(repaired=True), two_passes=lambda: _merge(repaired=False)
    ),
    options="s by 1, where there is q",
)
RULES = (QUERIES, KEYS, PREFIX, BLOCKS, INDEXED, PARTS, PARTS_OF_ROWS, SHARED_HEADS)

r"""Make the probabilities again from the log-sum-exp of each row, a single number that the forward pass leaves.

    softmax(S)[q,k]  =  exp(S[q,k] - L[q]),    L[q] = m[q] + log l[q] = log sum_k exp S[q,k]

Precondition  the forward pass ran this very softmax, so that it has m and l; its scores and probabilities carry the same
              indices.
Proof         exp(s - m - log l) = exp(s - m) / l.
Effect        two passes over the keys (for m, then for l) are gone: the probabilities are pointwise in the scores. One
              number a row is saved and read.
Reference     Dao 2023, arXiv:2307.08691, section 3.1 (only the log-sum-exp is stored); arXiv:2205.14135, appendix B.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_s


def shape(graph: Graph) -> Iterator[Einsum]:
    """Every softmax of a program that another one ran before."""
    return (e for e in graph.einsums if e.map is Map.SOFTMAX and graph.given)


def rewrite(graph: Graph, match: Einsum) -> Graph:
    """Shift by L and exponentiate; the earlier program makes L."""
    scores, result, mask = match.inputs[0], match.output, match.domain
    rows = scores.indices[:-1]
    names = graph.unused(result.name, "m", "l", "log_l", "L", "X", "E", "Y")
    m, low, log_l, lse = (Tensor(name, rows, b_l) for name in names[:4])
    x, e, y = (Tensor(name, scores.indices, scores.width) for name in names[4:])
    left = (
        Einsum(m, (scores,), Map.COPY, Reduce.MAX, mask),
        Einsum(x, (scores, m), Map.SUB, None, mask),
        Einsum(e, (x,), Map.EXP, None, mask),
        Einsum(low, (e,), Map.COPY, Reduce.SUM, mask),
        Einsum(log_l, (low,), Map.LOG),
        Einsum(lse, (m, log_l), Map.ADD),
    )
    pointwise = (Einsum(y, (scores, lse), Map.SUB, None, mask), Einsum(result, (y,), Map.EXP, None, mask))
    return replace(graph, given=(*graph.given, *left)).replace((match,), pointwise)


def _ran_before(graph: Graph, match: Einsum) -> bool:
    return match in graph.given


def _same_indices(graph: Graph, match: Einsum) -> bool:
    return match.inputs[0].indices == match.output.indices


def _graph(*, new_scores: bool = False, transposed: bool = False) -> Graph:
    """P = softmax(S) run before and run again; or of scores made here alone; or with its result transposed."""
    q, k = Index("q", N_q), Index("k", N_k)
    a, s = Tensor("A", (q, k), b_s), Tensor("S", (q, k), b_s)
    p, y = Tensor("P", (k, q) if transposed else (q, k), b), Tensor("Z", (q, k), b)
    doubled = Einsum(s, (a, a), Map.ADD)
    softmax = Einsum(p, (s,), Map.SOFTMAX)
    before = (Einsum(Tensor("A2", (q, k), b), (a,), Map.EXP),) if new_scores else (doubled, softmax)
    return Graph((doubled, softmax, Einsum(y, (p, s), Map.MUL)), ("Z",), before)


RULE = Rule(
    name="use-log-sum-exp",
    claim="P = exp(S - L) with the row's log-sum-exp L, which the forward pass leaves",
    reference="arXiv:2307.08691, section 3.1; arXiv:2205.14135, appendix B.4",
    shape=shape,
    preconditions=(
        Precondition(
            says="the forward pass ran this softmax, so that it can leave its row's log-sum-exp",
            holds=_ran_before,
            counterexample=lambda: _graph(new_scores=True),
        ),
        Precondition(
            says="the softmax keeps its input's indices in order, so that its last index is the one it normalises over",
            holds=_same_indices,
            counterexample=lambda: _graph(transposed=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

r"""Open the softmax, shifted by its row maximum.

    softmax(S)[q,k]  =  exp(S[q,k] - m[q]) / l[q],    m[q] = max_k S[q,k],    l[q] = sum_k exp(S[q,k] - m[q])

Precondition  the softmax's input and output carry the same indices.
Proof         exp(s - m) = exp(s) exp(-m), and exp(-m) is constant in k: it cancels in the quotient.
Effect        opens 2 reductions and 3 elementwise operations to counting and fusion; three passes over k.
Reference     Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 2 (safe softmax).
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_s


def shape(graph: Graph) -> Iterator[Einsum]:
    """Every softmax."""
    return (e for e in graph.einsums if e.map is Map.SOFTMAX)


def rewrite(graph: Graph, match: Einsum) -> Graph:
    """Maximum, shift, exponential, sum, quotient."""
    scores, result, mask = match.inputs[0], match.output, match.domain
    rows = scores.indices[:-1]
    m, low, x, e = graph.unused(result.name, "m", "l", "X", "E")
    maximum, total = Tensor(m, rows, b_l), Tensor(low, rows, b_l)
    shifted, exponential = Tensor(x, scores.indices, scores.width), Tensor(e, scores.indices, scores.width)
    return graph.replace(
        (match,),
        (
            Einsum(maximum, (scores,), Map.COPY, Reduce.MAX, mask),
            Einsum(shifted, (scores, maximum), Map.SUB, None, mask),
            Einsum(exponential, (shifted,), Map.EXP, None, mask),
            Einsum(total, (exponential,), Map.COPY, Reduce.SUM, mask),
            Einsum(result, (exponential, total), Map.DIV, None, mask),
        ),
    )


def _same_indices(graph: Graph, match: Einsum) -> bool:
    return match.inputs[0].indices == match.output.indices


def _graph(*, transposed: bool = False) -> Graph:
    """P = softmax(S); transposed, the result's last index is not the one that the input has last."""
    q, k = Index("q", N_q), Index("k", N_k)
    scores = Tensor("S", (q, k), b_s)
    result = Tensor("P", (k, q) if transposed else (q, k), b)
    return Graph((Einsum(result, (scores,), Map.SOFTMAX),), ("P",))


RULE = Rule(
    name="split-softmax",
    claim="softmax(S) = exp(S - m) / l with the row maximum m and the row sum l; the shift cancels",
    reference="arXiv:1805.02867, algorithm 2",
    shape=shape,
    preconditions=(
        Precondition(
            says="the softmax keeps its input's indices in order, so that its last index is the one it normalises over",
            holds=_same_indices,
            counterexample=lambda: _graph(transposed=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

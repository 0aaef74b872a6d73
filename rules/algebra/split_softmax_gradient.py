r"""Open the softmax's gradient: its Jacobian is diagonal but for one row sum.

    sum_k dP[q,k] P[q,k] ([k = j] - P[q,j])  =  P[q,j] (dP[q,j] - D[q]),    D[q] = sum_k P[q,k] dP[q,k]

Precondition  P and the result carry the same indices in the same order; dP carries them too.
Proof         the sum over k of dP P [k = j] is its term at j; P[q,j] is constant in k and leaves the other sum, which is D.
Effect        opens one reduction and two elementwise operations to counting and fusion; two passes over k, since D is
              complete only after the first.
Reference     Dao et al. 2022, arXiv:2205.14135, appendix B.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l


def shape(graph: Graph) -> Iterator[Einsum]:
    """Every gradient of a softmax."""
    return (e for e in graph.einsums if e.map is Map.SOFTMAX_GRADIENT)


def rewrite(graph: Graph, match: Einsum) -> Graph:
    """Row sum, difference, product."""
    (p, dp), result, mask = match.inputs, match.output, match.domain
    row_sum, difference = graph.unused(result.name, "D", "Z")
    total = Tensor(row_sum, p.indices[:-1], b_l)
    centred = Tensor(difference, result.indices, result.width)
    return graph.replace(
        (match,),
        (
            Einsum(total, (p, dp), Map.MUL, Reduce.SUM, mask),
            Einsum(centred, (dp, total), Map.SUB, None, mask),
            Einsum(result, (p, centred), Map.MUL, None, mask),
        ),
    )


def _same_indices(graph: Graph, match: Einsum) -> bool:
    return match.inputs[0].indices == match.output.indices


def _gradient_is_as_wide(graph: Graph, match: Einsum) -> bool:
    return set(match.inputs[1].indices) == set(match.output.indices)


def _graph(*, transposed: bool = False, row_alone: bool = False) -> Graph:
    """The gradient dS of P = softmax(S); transposed, it has another index last than P, or dP is one number a row."""
    q, k = Index("q", N_q), Index("k", N_k)
    p, dp = Tensor("P", (q, k), b), Tensor("dP", (q,) if row_alone else (q, k), b)
    ds = Tensor("dS", (k, q) if transposed else (q, k), b)
    return Graph((Einsum(ds, (p, dp), Map.SOFTMAX_GRADIENT),), ("dS",))


RULE = Rule(
    name="split-softmax-gradient",
    claim="dS = P (dP - D) with the row sum D = sum_k P dP: the Jacobian is diagonal but for it",
    reference="arXiv:2205.14135, appendix B.2",
    shape=shape,
    preconditions=(
        Precondition(
            says="P and the result carry the same indices in order, so that both have the normalised one last",
            holds=_same_indices,
            counterexample=lambda: _graph(transposed=True),
        ),
        Precondition(
            says="dP carries every index of the result",
            holds=_gradient_is_as_wide,
            counterexample=lambda: _graph(row_alone=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

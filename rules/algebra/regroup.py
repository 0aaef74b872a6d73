r"""Sum a product of three factors by the pair of them that is at hand.

    sum_k P[q,k] (G[q,k] D[q,k])   =   sum_k (P[q,k] D[q,k]) G[q,k],    where Y = P D is at hand and G is a product of matrices

Precondition  Y runs over the same pairs as the sum and is at hand before it.
Proof         * of numbers is associative and commutative.
Effect        with dropout, rowsum(P dP) becomes rowsum(Y dY): a row sum of what O was made of, which can be taken from O.
Reference     Dao et al. 2022, arXiv:2205.14135, appendix B.4 (D = rowsum(dO O) with dropout).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.mask import Mask, causal
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_p, d_v

Match = tuple[Einsum, Tensor, Einsum]


def shape(graph: Graph) -> Iterator[Match]:
    """(sum, G, Y): a sum of P (G D) with a contraction G, and an Einsum of here or of an earlier program that is P D."""
    for total in graph.einsums:
        if total.map is not Map.MUL or total.reduce is not Reduce.SUM:
            continue
        for p, product in (total.inputs, total.inputs[::-1]):
            made = graph.producers.get(product.name)
            if made is None or made.map is not Map.MUL or made.reduced:
                continue
            for gradient, factor in (made.inputs, made.inputs[::-1]):
                if not _is_contracted(graph, gradient):
                    continue
                for y in (*graph.einsums, *graph.given):
                    if y.map is Map.MUL and not y.reduced and y.inputs in ((p, factor), (factor, p)):
                        yield total, gradient, y


def _is_contracted(graph: Graph, tensor: Tensor) -> bool:
    maker = graph.producers.get(tensor.name)
    return maker is not None and maker.map is Map.MUL and maker.reduce is Reduce.SUM


def rewrite(graph: Graph, match: Match) -> Graph:
    """Sum Y G."""
    total, gradient, y = match
    return graph.replace((total,), (replace(total, inputs=(y.output, gradient)),))


def _same_pairs(graph: Graph, match: Match) -> bool:
    return match[2].domain == match[0].domain


def _is_at_hand(graph: Graph, match: Match) -> bool:
    total, _, y = match
    before = graph.einsums[: graph.einsums.index(total)]
    return y in before if y.output.name in graph.producers else y in graph.given


def _graph(*, late: bool = False, masked: bool = False) -> Graph:
    """D = sum P dP with dP = G M, G = dO V^T and Y = P M; Y is made late, or by another mask."""
    q, k, e = Index("q", N_q), Index("k", N_k), Index("e", d_v)
    contracted = Einsum(
        Tensor("G", (q, k), b_p), (Tensor("dO", (q, e), b), Tensor("V", (k, e), b)), Map.MUL, Reduce.SUM
    )
    p, g, m, y, dp = (Tensor(name, (q, k), b_p) for name in ("P", "G", "M", "Y", "dP"))
    total, z = Tensor("D", (q,), b_l), Tensor("Z", (q, k), b)
    mask: Mask | None = causal(N_q, N_k) if masked else None
    weighted = Einsum(y, (p, m), Map.MUL, None, mask)
    product = Einsum(dp, (g, m), Map.MUL)
    summed = Einsum(total, (p, dp), Map.MUL, Reduce.SUM)
    rest = (Einsum(z, (y, dp), Map.ADD),)
    einsums = (product, summed, weighted) if late else (weighted, product, summed)
    return Graph((contracted, *einsums, *rest), ("D", "Z"))


RULE = Rule(
    name="regroup",
    claim="a sum of products of three factors is taken by the pair of factors whose product is at hand",
    reference="arXiv:2205.14135, appendix B.4",
    shape=shape,
    preconditions=(
        Precondition(
            says="the product at hand runs over the same pairs as the sum",
            holds=_same_pairs,
            counterexample=lambda: _graph(masked=True),
        ),
        Precondition(
            says="the product is at hand before the sum",
            holds=_is_at_hand,
            counterexample=lambda: _graph(late=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

r"""Take the row sum of the softmax's gradient from the output instead of from N_q N_k products.

    sum_k P[q,k] dP[q,k]  =  sum_e dO[q,e] O[q,e],    where dP[q,k] = sum_e dO[q,e] V[k,e],  O[q,e] = sum_k P[q,k] V[k,e]

Precondition  the row sum runs over all that O's contraction runs over, which dO does not carry; P does not carry what dP's
              contraction runs over; all three run over the same pairs; O is at hand.
Proof         exchange the sums: sum_k P sum_e dO V = sum_e dO sum_k P V.
Effect        2 N_q N_k operations become 2 N_q d_v, and D is known before the keys are run over: one pass over k, not two.
              O is read.
Reference     Dao et al. 2022, arXiv:2205.14135, appendix B.2, equation 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.mask import Mask, causal
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_p, d_v

Match = tuple[Einsum, Einsum, Einsum]


def _is_sum_of_products(e: Einsum | None) -> bool:
    return e is not None and e.map is Map.MUL and e.reduce is Reduce.SUM


def shape(graph: Graph) -> Iterator[Match]:
    """(row sum, dP's contraction, O's contraction): D = sum P dP, dP = sum dO V and an earlier O = sum P V."""
    for total in graph.einsums:
        if not _is_sum_of_products(total):
            continue
        for p, dp in (total.inputs, total.inputs[::-1]):
            product = graph.producers.get(dp.name)
            if product is None or not _is_sum_of_products(product):
                continue
            for value in product.inputs:
                for output in graph.given:
                    if _is_sum_of_products(output) and output.inputs in ((p, value), (value, p)):
                        yield total, product, output


def rewrite(graph: Graph, match: Match) -> Graph:
    """Contract dO with O; first of all, where dO is an input."""
    total, _, output = match
    gradient = _gradient(match)
    contracted = Einsum(total.output, (gradient, output.output), Map.MUL, Reduce.SUM)
    if gradient.name in graph.producers or output.output.name in graph.producers:
        return graph.replace((total,), (contracted,))
    return replace(graph, einsums=(contracted, *(e for e in graph.einsums if e is not total)))


def _gradient(match: Match) -> Tensor:
    """The factor of dP that is not V."""
    total, product, output = match
    p = next(t for t in total.inputs if t != product.output)
    value = next(t for t in output.inputs if t != p)
    left, right = product.inputs
    return right if left == value else left


def _runs_over_the_output_s(graph: Graph, match: Match) -> bool:
    total, _, output = match
    return set(output.reduced) <= set(total.reduced)


def _gradient_is_constant(graph: Graph, match: Match) -> bool:
    return not set(_gradient(match).indices) & set(match[2].reduced)


def _p_is_constant(graph: Graph, match: Match) -> bool:
    total, product, _ = match
    return not any(set(t.indices) & set(product.reduced) for t in total.inputs if t != product.output)


def _same_pairs(graph: Graph, match: Match) -> bool:
    return len({e.domain for e in match}) == 1


def _output_is_at_hand(graph: Graph, match: Match) -> bool:
    before = graph.einsums[: graph.einsums.index(match[0])]
    name = match[2].output.name
    return name not in graph.producers or any(e.output.name == name for e in before)


def _graph(
    *,
    gradient: str = "qe",
    p: str = "qk",
    row: str = "q",
    mask: Mask | None = None,
    by_column: bool = False,
    late: bool = False,
) -> Graph:
    """D = rowsum(P dP) after a forward pass O = P V; the flags break one clause each."""
    known = {"q": Index("q", N_q), "k": Index("k", N_k), "e": Index("e", d_v)}

    def tensor(name: str, indices: str, width: object = b) -> Tensor:
        return Tensor(name, tuple(known[i] for i in indices), width)

    probabilities, v, o = tensor("P", p, b_p), tensor("V", "ke"), tensor("O", "qe")
    do, dp, total = tensor("dO", gradient), tensor("dP", "qk", b_p), tensor("D", "k" if by_column else row, b_l)
    given = (Einsum(o, (probabilities, v), Map.MUL, Reduce.SUM, mask),)
    einsums = (
        Einsum(dp, (do, v), Map.MUL, Reduce.SUM),
        Einsum(total, (probabilities, dp), Map.MUL, Reduce.SUM),
        Einsum(tensor("Z", "qk"), (dp, total), Map.SUB),
    )
    if late:
        return Graph((*einsums, *given), ("Z", "O"), given)
    return Graph(einsums, ("Z",), given)


RULE = Rule(
    name="row-sum",
    claim="D = rowsum(P dP) is rowsum(dO O), known before the keys are run over",
    reference="arXiv:2205.14135, appendix B.2, equation 4",
    shape=shape,
    preconditions=(
        Precondition(
            says="the row sum runs over all that the output's contraction runs over",
            holds=_runs_over_the_output_s,
            counterexample=lambda: _graph(by_column=True),
        ),
        Precondition(
            says="the gradient of the output does not carry what the output's contraction runs over",
            holds=_gradient_is_constant,
            counterexample=lambda: _graph(gradient="qke"),
        ),
        Precondition(
            says="P does not carry what dP's contraction runs over",
            holds=_p_is_constant,
            counterexample=lambda: _graph(p="qke"),
        ),
        Precondition(
            says="the row sum, dP and the output run over the same pairs",
            holds=_same_pairs,
            counterexample=lambda: _graph(mask=causal(N_q, N_k)),
        ),
        Precondition(
            says="the output was left by the forward pass, or is made before the row sum",
            holds=_output_is_at_hand,
            counterexample=lambda: _graph(late=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

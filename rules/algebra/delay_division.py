r"""Divide after a product of elements, not before.

    (A[q,k] / l[q]) * D[q,k]   =   (A[q,k] * D[q,k]) / l[q]

Precondition  nothing else reads the quotient, nor is it an output; A and D bind every index of the result.
Proof         * and / of numbers commute.
Effect        none by itself; the division comes to stand where a contraction can take it past its sum: dropout on P is
              then no obstacle to deferring the division.
Reference     Dao et al. 2022, arXiv:2205.14135, algorithm 2, line 14 (dropout on the unnormalised probabilities).
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Einsum, Index, Map, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_p

Match = tuple[Einsum, Einsum]


def shape(graph: Graph) -> Iterator[Match]:
    """(division, product) pairs, both pointwise."""
    for division in graph.einsums:
        if division.map is Map.DIV and division.reduce is None:
            for reader in graph.readers.get(division.output.name, ()):
                if reader.map is Map.MUL and reader.reduce is None and reader.inputs.count(division.output) == 1:
                    yield division, reader


def rewrite(graph: Graph, match: Match) -> Graph:
    """Multiply the numerator, then divide."""
    division, product = match
    numerator, denominator = division.inputs
    unnormalised = Tensor(f"{product.output.name}_{numerator.name}", product.output.indices, numerator.width)
    factors = tuple(numerator if t == division.output else t for t in product.inputs)
    return graph.replace(
        match,
        (
            Einsum(unnormalised, factors, Map.MUL, None, product.domain),
            Einsum(product.output, (unnormalised, denominator), Map.DIV, None, product.domain),
        ),
    )


def _quotient_is_private(graph: Graph, match: Match) -> bool:
    division, product = match
    return graph.readers[division.output.name] == (product,) and division.output.name not in graph.outputs


def _factors_bind_the_result(graph: Graph, match: Match) -> bool:
    division, product = match
    bound = set(division.inputs[0].indices)
    for tensor in product.inputs:
        bound |= set(tensor.indices) if tensor != division.output else set()
    return set(product.output.indices) <= bound


def _graph(*, numerator: str = "qk", factor: str = "qk", read_twice: bool = False) -> Graph:
    """Z = (A / l) D, with the indices of A and D to choose."""
    known = {"q": Index("q", N_q), "k": Index("k", N_k)}
    a = Tensor("A", tuple(known[i] for i in numerator), b_p)
    low = Tensor("l", (known["q"],), b_l)
    p = Tensor("P", tuple(known[i] for i in dict.fromkeys(("q", *numerator))), b_p)
    kept = Tensor("D", tuple(known[i] for i in factor), b)
    z = Tensor("Z", (known["q"], known["k"]), b_p)
    einsums = (Einsum(p, (a, low), Map.DIV), Einsum(z, (p, kept), Map.MUL))
    return Graph(einsums, ("Z", "P") if read_twice else ("Z",))


RULE = Rule(
    name="delay-division",
    claim="dividing before a product of elements equals dividing after it",
    reference="arXiv:2205.14135, algorithm 2",
    shape=shape,
    preconditions=(
        Precondition(
            says="nothing else reads the quotient, and it is no output",
            holds=_quotient_is_private,
            counterexample=lambda: _graph(read_twice=True),
        ),
        Precondition(
            says="numerator and factor bind every index of the product",
            holds=_factors_bind_the_result,
            counterexample=lambda: _graph(numerator="k", factor="k"),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

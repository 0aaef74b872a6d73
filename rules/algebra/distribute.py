r"""Contract each term of a sum or difference by itself.

    sum_k (A[q,k] - D[q,k]) * V[k,e]   =   sum_k A[q,k] * V[k,e]  -  sum_k D[q,k] * V[k,e]

Precondition  each term and V bind every index of the contraction.
Proof         * distributes over + and -, and sums may be split.
Effect        two contractions instead of one; each term, such as either softmax of differential attention, then streams on
              its own. What else reads the sum or difference reads it still.
Reference     Ye et al. 2024, arXiv:2410.05258, section 2.1 and appendix A (differential attention as two FlashAttentions).
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_p, d_v

Match = tuple[Einsum, Einsum]


def shape(graph: Graph) -> Iterator[Match]:
    """(sum or difference, contraction) pairs."""
    for terms in graph.einsums:
        if terms.map in (Map.ADD, Map.SUB) and terms.reduce is None:
            for reader in graph.readers.get(terms.output.name, ()):
                if reader.map is Map.MUL and reader.reduce is Reduce.SUM and reader.inputs.count(terms.output) == 1:
                    yield terms, reader


def rewrite(graph: Graph, match: Match) -> Graph:
    """One contraction a term, then their sum or difference."""
    terms, contraction = match
    result = contraction.output
    parts = []
    for n, term in enumerate(terms.inputs, 1):
        part = Tensor(f"{result.name}{n}", result.indices, result.width)
        factors = tuple(term if t == terms.output else t for t in contraction.inputs)
        parts.append(Einsum(part, factors, Map.MUL, Reduce.SUM, contraction.domain))
    first, second = parts
    new = (first, second, Einsum(result, (first.output, second.output), terms.map))
    private = graph.readers[terms.output.name] == (contraction,) and terms.output.name not in graph.outputs
    return graph.replace(match if private else (contraction,), new)


def _each_binds_the_result(graph: Graph, match: Match) -> bool:
    terms, contraction = match
    others = {i for t in contraction.inputs if t != terms.output for i in t.indices}
    return all(set(contraction.space) <= others | set(term.indices) for term in terms.inputs)


def _graph(*, subtrahend: str = "qk") -> Graph:
    """O = (A - D) V, with the indices of D to choose."""
    known = {"q": Index("q", N_q), "k": Index("k", N_k), "e": Index("e", d_v)}
    a = Tensor("A", (known["q"], known["k"]), b_p)
    less = Tensor("D", tuple(known[i] for i in subtrahend), b_p)
    z = Tensor("Z", (known["q"], known["k"]), b_p)
    v = Tensor("V", (known["k"], known["e"]), b)
    o = Tensor("O", (known["q"], known["e"]), b)
    einsums = (Einsum(z, (a, less), Map.SUB), Einsum(o, (z, v), Map.MUL, Reduce.SUM))
    return Graph(einsums, ("O",))


RULE = Rule(
    name="distribute",
    claim="a contraction of a sum or difference is the sum or difference of the contractions",
    reference="arXiv:2410.05258, section 2.1",
    shape=shape,
    preconditions=(
        Precondition(
            says="each term and the cofactor bind every index of the contraction",
            holds=_each_binds_the_result,
            counterexample=lambda: _graph(subtrahend="k"),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

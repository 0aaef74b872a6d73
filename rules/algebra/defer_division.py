r"""Defer a division past a contraction.

    sum_k (A[q,k] / l[q]) * V[k,e]   =   (sum_k A[q,k] * V[k,e]) / l[q]

Precondition  l carries no index that the contraction reduces; nothing else reads the quotient, nor is it an output; A and V
              bind every index of the result.
Proof         1/l[q] is constant in k, and * distributes over sum.
Effect        N_q N_k divisions become N_q d_v, and the pass over k that waited for l is gone.
Reference     Rabe & Staats 2021, arXiv:2112.05682, section 2 ("lazy softmax").
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_p, d_v

Match = tuple[Einsum, tuple[Einsum, ...]]


def shape(graph: Graph) -> Iterator[Match]:
    """(division, contractions): a quotient, and the sums of products over what its denominator was summed over that read it."""
    for division in graph.einsums:
        if division.map is Map.DIV and division.reduce is None:
            readers = graph.readers.get(division.output.name, ())
            found = tuple(
                e
                for e in readers
                if e.map is Map.MUL
                and e.reduce is Reduce.SUM
                and e.inputs.count(division.output) == 1
                and _waits(graph, e, division.inputs[1])
            )
            if found:
                yield division, found


def _waits(graph: Graph, contraction: Einsum, denominator: Tensor) -> bool:
    """Whether *contraction* runs over what *denominator* was summed over, so that it would have to wait for all of it."""
    maker = graph.producers.get(denominator.name)
    if maker is None:
        return True
    if maker.reduced:
        return bool(set(maker.reduced) & set(contraction.reduced))
    return any(_waits(graph, contraction, t) for t in maker.inputs if t.name in graph.producers)


def rewrite(graph: Graph, match: Match) -> Graph:
    """Contract the numerator, then divide each result once."""
    division, contractions = match
    numerator, denominator = division.inputs
    graph = graph.replace((division,), ())
    for e in contractions:
        unnormalised = Tensor(f"U_{e.output.name}", e.output.indices, e.output.width)
        factors = tuple(numerator if t == division.output else t for t in e.inputs)
        product = Einsum(unnormalised, factors, Map.MUL, Reduce.SUM, e.domain)
        graph = graph.replace((e,), (product, Einsum(e.output, (unnormalised, denominator), Map.DIV)))
    return graph


def _denominator_is_constant(graph: Graph, match: Match) -> bool:
    division, contractions = match
    return not any(set(division.inputs[1].indices) & set(e.reduced) for e in contractions)


def _quotient_is_private(graph: Graph, match: Match) -> bool:
    division, contractions = match
    return graph.readers[division.output.name] == contractions and division.output.name not in graph.outputs


def _factors_bind_the_result(graph: Graph, match: Match) -> bool:
    division, contractions = match
    for e in contractions:
        bound = set(division.inputs[0].indices)
        for tensor in e.inputs:
            bound |= set(tensor.indices) if tensor != division.output else set()
        if not set(e.output.indices) | set(e.reduced) <= bound:
            return False
    return True


def _graph(*, denominator: str = "q", numerator: str = "qk", read_twice: bool = False) -> Graph:
    """O = (A / l) V, with the denominator's and the numerator's indices to choose."""
    known = {"q": Index("q", N_q), "k": Index("k", N_k), "e": Index("e", d_v)}
    a = Tensor("A", tuple(known[i] for i in numerator), b_p)
    low = Tensor("l", tuple(known[i] for i in denominator), b_l)
    v = Tensor("V", (known["k"], known["e"]), b)
    p = Tensor("P", (known["q"], known["k"]), b_p)
    o = Tensor("O", (known["q"], known["e"]), b)
    einsums = (Einsum(p, (a, low), Map.DIV), Einsum(o, (p, v), Map.MUL, Reduce.SUM))
    return Graph(einsums, ("O", "P") if read_twice else ("O",))


RULE = Rule(
    name="defer-division",
    claim="dividing P by its row sum l before the contraction over k equals dividing its result once a row",
    reference="arXiv:2112.05682, section 2",
    shape=shape,
    preconditions=(
        Precondition(
            says="the contraction reduces no index of the denominator",
            holds=_denominator_is_constant,
            counterexample=lambda: _graph(denominator="qk"),
        ),
        Precondition(
            says="nothing else reads the quotient, and it is no output",
            holds=_quotient_is_private,
            counterexample=lambda: _graph(read_twice=True),
        ),
        Precondition(
            says="numerator and cofactor bind every index of the contraction",
            holds=_factors_bind_the_result,
            counterexample=lambda: _graph(numerator="k"),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

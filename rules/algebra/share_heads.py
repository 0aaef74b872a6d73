r"""Read a shared KV head where it lies, instead of a copy repeated for each query head of its group.

    sum_d Q[g,r,q,d] K'[g,r,k,d]  with  K'[g,r,k,d] = K[g,k,d]   =   sum_d Q[g,r,q,d] K[g,k,d]

Precondition  the copy is no output; every reader binds the repeated index by another tensor.
Proof         the copy has equal values for all r, and its readers use it pointwise.
Effect        the copy's write and its larger read are gone; FLOPs do not change.
Reference     Shazeer 2019, arXiv:1911.02150, section 3; Ainslie et al. 2023, arXiv:2305.13245, section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, d, h, h_k


def shape(graph: Graph) -> Iterator[Einsum]:
    """Copies that repeat a tensor along an index it lacks."""
    for e in graph.einsums:
        if e.map is Map.COPY and e.reduce is None and _repeated(e):
            yield e


def _repeated(copy: Einsum) -> set[Index]:
    """The indices that the copy adds."""
    return set(copy.output.indices) - set(copy.inputs[0].indices)


def rewrite(graph: Graph, match: Einsum) -> Graph:
    """Let every reader read the original."""
    original = match.inputs[0]
    readers = graph.readers.get(match.output.name, ())
    einsums = []
    for e in graph.einsums:
        inputs = tuple(original if t == match.output else t for t in e.inputs)
        if e != match:
            einsums.append(replace(e, inputs=inputs) if e in readers else e)
    return replace(graph, einsums=tuple(einsums))


def _copy_is_private(graph: Graph, match: Einsum) -> bool:
    return match.output.name not in graph.outputs


def _readers_bind_the_index(graph: Graph, match: Einsum) -> bool:
    repeated = _repeated(match)
    for reader in graph.readers.get(match.output.name, ()):
        others = {i for t in reader.inputs if t != match.output for i in t.indices}
        if not repeated & set(reader.space) <= others:
            return False
    return True


def _graph(*, copy_leaves: bool = False, read_alone: bool = False) -> Graph:
    """S = Q K'^T with K' repeated over the r query heads of a group."""
    g, r = Index("g", h_k), Index("r", h / h_k)
    q, k, c = Index("q", N_q), Index("k", N_k), Index("d", d)
    query, key = Tensor("Q", (g, r, q, c), b), Tensor("K", (g, k, c), b)
    repeated = Tensor("K_rep", (g, r, k, c), b)
    einsums = [
        Einsum(repeated, (key,), Map.COPY),
        Einsum(Tensor("S", (g, r, q, k), b), (query, repeated), Map.MUL, Reduce.SUM),
    ]
    outputs = ["S"]
    if read_alone:
        einsums.append(Einsum(Tensor("Z", (g, r, k, c), b), (repeated,), Map.EXP))
        outputs.append("Z")
    if copy_leaves:
        outputs.append("K_rep")
    return Graph(tuple(einsums), tuple(outputs))


RULE = Rule(
    name="share-heads",
    claim="query heads of a group read their KV head where it lies instead of a repeated copy",
    reference="arXiv:1911.02150, section 3; arXiv:2305.13245, section 2.2",
    shape=shape,
    preconditions=(
        Precondition(
            says="the repeated copy is no output",
            holds=_copy_is_private,
            counterexample=lambda: _graph(copy_leaves=True),
        ),
        Precondition(
            says="every reader binds the repeated index by another tensor",
            holds=_readers_bind_the_index,
            counterexample=lambda: _graph(read_alone=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

r"""Let each part make for itself what is pointwise in an input, such as the scaled query.

    Qs[q,d] = Q[q,d] * c,   read by all parts   =   Q_s[s,q,d] = Q[q,d],   Qs[s,q,d] = Q_s[s,q,d] * c

Precondition  everything that reads it runs over the parts; it is no output.
Proof         the values are equal for all s, and a reader at part s reads its own.
Effect        no kernel before the parts, which would write Qs and have it read: each part reads Q itself, and runs the
              operation again.
Reference     Dao et al. 2023, Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html (each split loads the query).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_s, d, n_s

Match = tuple[Einsum, Index]


def shape(graph: Graph) -> Iterator[Match]:
    """Pointwise Einsums on inputs without an index of parts, and that index, where some reader has it."""
    for e in graph.einsums:
        if e.reduced or e.map.is_opaque or e.domain is not None or not e.output.indices:
            continue
        if any(t.indices and t.name in graph.producers for t in e.inputs):
            continue
        readers = graph.readers.get(e.output.name, ())
        for part in dict.fromkeys(i for reader in readers for i in reader.space if i.part_of):
            if part not in e.output.indices:
                yield e, part


def rewrite(graph: Graph, match: Match) -> Graph:
    """Read the operand once a part; the operation and its readers have the part's index."""
    e, part = match
    operand = next(t for t in e.inputs if t.indices)
    read = Tensor(f"{operand.name}_{part.name}", (part, *operand.indices), operand.width)
    made = replace(e.output, indices=(part, *e.output.indices))
    copied = Einsum(read, (operand,), Map.COPY)
    again = replace(e, output=made, inputs=tuple(read if t == operand else t for t in e.inputs))
    einsums: list[Einsum] = []
    for other in graph.einsums:
        if other == e:
            einsums += [copied, again]
        else:
            einsums.append(replace(other, inputs=tuple(made if t == e.output else t for t in other.inputs)))
    return replace(graph, einsums=tuple(einsums))


def _readers_run_over_the_parts(graph: Graph, match: Match) -> bool:
    e, part = match
    return all(part in reader.space for reader in graph.readers[e.output.name])


def _is_private(graph: Graph, match: Match) -> bool:
    e, _ = match
    return e.output.name not in graph.outputs


def _graph(*, read_outside: bool = False, leaves: bool = False) -> Graph:
    """Scores of a scaled query, keys in parts; with a reader that has no parts, or the scaled query as an output."""
    s, q, k, c = Index("s", n_s, part_of="k"), Index("q", N_q), Index("k", N_k / n_s), Index("d", d)
    query, key = Tensor("Q", (q, c), b), Tensor("K", (s, k, c), b)
    scaled, scores, total = Tensor("Qs", (q, c), b), Tensor("S", (s, q, k), b_s), Tensor("l", (q,), b)
    einsums = [
        Einsum(scaled, (query, Tensor("c", (), b)), Map.MUL),
        Einsum(scores, (scaled, key), Map.MUL, Reduce.SUM),
        Einsum(total, (scores,), Map.COPY, Reduce.SUM),
    ]
    if read_outside:
        einsums.append(Einsum(Tensor("Z", (q,), b), (scaled,), Map.COPY, Reduce.SUM))
    return Graph(tuple(einsums), ("l", *(("Z",) if read_outside else ()), *(("Qs",) if leaves else ())))


RULE = Rule(
    name="read-in-each-part",
    claim="each part of the keys reads the query for itself and scales it",
    reference="Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html",
    shape=shape,
    preconditions=(
        Precondition(
            says="everything that reads the result runs over the parts",
            holds=_readers_run_over_the_parts,
            counterexample=lambda: _graph(read_outside=True),
        ),
        Precondition(
            says="the result is no output",
            holds=_is_private,
            counterexample=lambda: _graph(leaves=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

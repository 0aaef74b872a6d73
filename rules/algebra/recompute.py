r"""Compute again what an earlier program made, instead of reading what it saved.

    S saved by the forward pass   ->   S[q,k] = sum_d Q[q,d] K[k,d], once more

Precondition  whatever it reads that is made here is made before the first reader of the result.
Proof         the same Einsum on the same values; the earlier program is known Einsum by Einsum.
Effect        the saved tensor is neither kept from one program to the other nor read; its work is done twice. For the
              scores: N_q N_k elements a head less to keep and to read, for 2 N_q N_k d more FLOPs: 5 products, not 4.
Reference     Dao et al. 2022, arXiv:2205.14135, section 3.1 (recomputation); Chen et al. 2016, arXiv:1604.06174.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b


def rewrite(graph: Graph, match: Einsum) -> Graph:
    """Put the Einsum just before its first reader; pairs go as early as they can, so that others can be made of them."""
    at = _first_reader(graph, match)
    if _carries_pairs(match):
        read = {t.name for t in match.inputs}
        at = max((n + 1 for n, e in enumerate(graph.einsums) if e.output.name in read), default=0)
    return replace(graph, einsums=(*graph.einsums[:at], match, *graph.einsums[at:]))


def _first_reader(graph: Graph, match: Einsum) -> int:
    return graph.einsums.index(graph.readers[match.output.name][0])


def _made_in_time(graph: Graph, match: Einsum) -> bool:
    before = {e.output.name for e in graph.einsums[: _first_reader(graph, match)]}
    return all(t.name in before for t in match.inputs if t.name in graph.producers)


def _graph(indices: tuple[Index, ...], *, too_late: bool = False) -> Graph:
    """Y = P + P of a saved P = exp(S), S = A + A; or S made here too, after Y."""
    a, s, p, y, z = (Tensor(name, indices, b) for name in ("A", "S", "P", "Y", "Z"))
    scores = Einsum(s, (a, a), Map.ADD)
    given = (scores, Einsum(p, (s,), Map.EXP))
    einsums = [Einsum(y, (p, p), Map.ADD)]
    if too_late:
        einsums += [scores, Einsum(z, (s, y), Map.ADD)]
    return Graph(tuple(einsums), ("Z",) if too_late else ("Y",), given)


def _rule(says: str, wanted: Callable[[Einsum], bool], indices: tuple[Index, ...]) -> Rule[Graph]:
    def shape(graph: Graph) -> Iterator[Einsum]:
        return (e for e in reversed(graph.saved) if wanted(e))

    return Rule(
        name="recompute",
        claim=f"{says} are computed again from what they were made of, not kept from the forward pass",
        reference="arXiv:2205.14135, section 3.1; arXiv:1604.06174",
        shape=shape,
        preconditions=(
            Precondition(
                says="what it reads is at hand before its result is first read",
                holds=_made_in_time,
                counterexample=lambda: _graph(indices, too_late=True),
            ),
        ),
        rewrite=rewrite,
        example=lambda: _graph(indices),
        options=says,
    )


def _carries_pairs(e: Einsum) -> bool:
    return {"q", "k"} <= {i.name for i in e.output.indices}


SCORES = _rule("scores and probabilities", _carries_pairs, (Index("q", N_q), Index("k", N_k)))
"""Saved tensors with an element for each pair of a query and a key."""
OPERANDS = _rule("scaled operands", lambda e: not e.reduced and not _carries_pairs(e), (Index("q", N_q),))
"""Saved tensors made point by point from others, such as Q times the scale."""
RULES = (SCORES, OPERANDS)

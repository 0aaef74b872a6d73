r"""Take a product of three factors in the order in which no intermediate has a row for each key.

    sum_k (sum_d Q[q,d] K[k,d]) V[k,e]        =   sum_d Q[q,d] (sum_k K[k,d] V[k,e])                  linear attention
    sum_n Q[h,q,n] (sum_c W[h,n,c] C[k,c])    =   sum_c (sum_n Q[h,q,n] W[h,n,c]) C[k,c]              MLA's absorption

Precondition  nothing else reads the inner product, nor is it an output; no mask thins it out; the outer cofactor carries no
              index that is summed inside; the outer mask, if any, speaks of indices that meet in one of the new products.
Proof         both sides are one sum over all summed indices of the product of the three factors.
Effect        the intermediate with N_k rows is gone: the N_q N_k scores of linear attention, or the keys and values that
              MLA would expand for every head. FLOPs change too, for better or worse: see where they cross.
Reference     Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2; DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.mask import causal
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, d, d_v

Match = tuple[Einsum, Einsum]
KEYS = "k"


def shape(graph: Graph) -> Iterator[Match]:
    """(inner, outer) sums of products: one reads the other, and their new order would leave no intermediate over the keys."""
    for inner in graph.einsums:
        if not _is_product(inner) or KEYS not in {i.name for i in inner.output.indices}:
            continue
        for outer in graph.readers.get(inner.output.name, ()):
            if not _is_product(outer) or outer.inputs.count(inner.output) != 1:
                continue
            moved = _moved(inner, outer)
            if moved is not None and KEYS not in {i.name for i in _new_indices(inner, outer, moved)}:
                yield inner, outer


def _is_product(e: Einsum) -> bool:
    return e.map is Map.MUL and e.reduce is Reduce.SUM and e.rescale is None


def _moved(inner: Einsum, outer: Einsum) -> Tensor | None:
    """The inner factor that carries all that the outer sum runs over, where the other one carries none of it."""
    over = set(outer.reduced)
    for factor, other in (inner.inputs, inner.inputs[::-1]):
        if over <= set(factor.indices) and not over & set(other.indices):
            return factor
    return None


def _cofactor(inner: Einsum, outer: Einsum) -> Tensor:
    """What the outer product multiplies the inner one by."""
    return next(t for t in outer.inputs if t != inner.output)


def _new_indices(inner: Einsum, outer: Einsum, moved: Tensor) -> tuple[Index, ...]:
    """The indices of the new inner product, in the order of the outer result."""
    bound = dict.fromkeys((*_cofactor(inner, outer).indices, *moved.indices))
    kept = [i for i in bound if i not in outer.reduced]
    first = [i for i in outer.output.indices if i in kept]
    return (*first, *(i for i in kept if i not in first))


def rewrite(graph: Graph, match: Match) -> Graph:
    """The outer cofactor times the moved factor first, then times the other one."""
    inner, outer = match
    moved = _moved(inner, outer)
    assert moved is not None
    other = next(t for t in inner.inputs if t != moved)
    cofactor = _cofactor(inner, outer)
    product = Tensor(f"{cofactor.name}_{moved.name}", _new_indices(inner, outer, moved), cofactor.width)
    early = outer.domain is not None and outer.domain.column in {i.name for i in outer.reduced}
    return graph.replace(
        match,
        (
            Einsum(product, (cofactor, moved), Map.MUL, Reduce.SUM, outer.domain if early else None),
            Einsum(outer.output, (product, other), Map.MUL, Reduce.SUM, None if early else outer.domain),
        ),
    )


def _inner_is_private(graph: Graph, match: Match) -> bool:
    inner, outer = match
    return graph.readers[inner.output.name] == (outer,) and inner.output.name not in graph.outputs


def _inner_is_whole(graph: Graph, match: Match) -> bool:
    return match[0].domain is None


def _no_index_is_captured(graph: Graph, match: Match) -> bool:
    inner, outer = match
    return not set(inner.reduced) & set(_cofactor(inner, outer).indices)


def _mask_has_a_place(graph: Graph, match: Match) -> bool:
    inner, outer = match
    if outer.domain is None:
        return True
    pair = {outer.domain.row, outer.domain.column}
    if outer.domain.column not in {i.name for i in outer.reduced}:
        return pair <= {i.name for i in outer.output.indices}
    moved = _moved(inner, outer)
    assert moved is not None
    return pair <= {i.name for t in (moved, _cofactor(inner, outer)) for i in t.indices}


def _graph(*, leaves: bool = False, masked: bool = False, captured: bool = False, late: bool = False) -> Graph:
    """O = (Q K^T) V; the flags break one clause each."""
    q, k, c, e = Index("q", N_q), Index("k", N_k), Index("d", d), Index("e", d_v)
    query, key = Tensor("Q", (q, c), b), Tensor("K", (k, c), b)
    values = Tensor("V", (k, c, e) if captured else (k, e), b)
    s = Tensor("S", (q, k), b)
    o = Tensor("O", (q, c, e) if captured else (q, e), b)
    mask = causal(N_q, N_k)
    einsums = (
        Einsum(s, (query, key), Map.MUL, Reduce.SUM, mask if masked else None),
        Einsum(o, (s, values), Map.MUL, Reduce.SUM, mask if late else None),
    )
    return Graph(einsums, ("O", "S") if leaves else ("O",))


RULE = Rule(
    name="reassociate",
    claim="a product of three factors is taken in the order in which no intermediate has a row for each key",
    reference="arXiv:2006.16236, section 3.2; arXiv:2405.04434, section 2.1.2",
    shape=shape,
    preconditions=(
        Precondition(
            says="nothing else reads the inner product, and it is no output",
            holds=_inner_is_private,
            counterexample=lambda: _graph(leaves=True),
        ),
        Precondition(
            says="no mask thins out the inner product",
            holds=_inner_is_whole,
            counterexample=lambda: _graph(masked=True),
        ),
        Precondition(
            says="the cofactor carries no index that is summed inside",
            holds=_no_index_is_captured,
            counterexample=lambda: _graph(captured=True),
        ),
        Precondition(
            says="the indices of the outer mask meet in one of the new products",
            holds=_mask_has_a_place,
            counterexample=lambda: _graph(late=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

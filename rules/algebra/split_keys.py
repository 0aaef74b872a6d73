r"""Cut the keys into parts: what is reduced over k is reduced within each part, and then over the parts.

    sum_k A[q,k]   =   sum_s ( sum_k A[q,s,k] ),        max_k A[q,k]   =   max_s ( max_k A[q,s,k] )

Precondition  a mask says which keys it keeps, not only how many; no softmax normalises over k; no output carries k; n_s
              divides N_k (a number, checked where numbers are).
Proof         sums and maxima are associative: the points of a reduction are the same, taken part by part. Key k of part s is
              key s N_k/n_s + k of all, so a mask keeps the pairs that it kept, and what is made of positions or drawn for a
              pair is what it was. Where k stands in memory, (s, k) stands in its place with k fastest: the same elements, the
              same bytes.
Effect        nothing waits for a whole run over k but the reductions over s: parts can run at once. Each reduction leaves n_s
              partial results instead of one.
Reference     Dao et al. 2023, Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.block_list import BlockList
from derive.density import Density
from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.mask import Mask
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_part, b_s, d_v, n_s, symbol

CUT, PART = "k", "s"
"""The index that is cut, and the one that says which part."""


def shape(graph: Graph) -> Iterator[Index]:
    """The keys, where something is reduced over them and they are not cut yet; N_k in memory, none selected or renamed."""
    keys = graph.indices.get(CUT)
    if any(e.map.is_selection and keys in e.output.indices and e.paging is None for e in graph.einsums):
        return
    views = (e for e in graph.einsums if e.map is Map.VIEW)
    if any([i == keys for i in e.output.indices] != [i == keys for i in e.inputs[0].indices] for e in views):
        return
    if PART not in graph.indices and not graph.given and keys and any(keys in e.reduced for e in graph.einsums):
        yield keys


def rewrite(graph: Graph, keys: Index) -> Graph:
    """Every tensor over k has an index more; every reduction over k is followed by one over the parts."""
    part, inside = Index(PART, n_s, part_of=CUT), Index(CUT, keys.extent / n_s)

    def cut(tensor: Tensor) -> Tensor:
        """An input, or a view of it, keeps its place in memory, what is generated its positions; else parts are outermost."""
        if keys not in tensor.indices:
            return tensor
        made = _is_made(graph, tensor)
        in_place = (part, inside) if not made else (inside,)
        indices = tuple(new for i in tensor.indices for new in (in_place if i == keys else (i,)))
        return replace(tensor, indices=(part, *indices) if made else indices)

    def masked(mask: Mask | None) -> Mask | None:
        return mask.cut(PART, n_s) if mask is not None and mask.column == CUT else mask

    einsums: list[Einsum] = []
    for e in graph.einsums:
        cut_up = replace(
            e, output=cut(e.output), inputs=tuple(map(cut, e.inputs)), domain=masked(e.domain), rescale=None
        )
        if keys not in e.space:
            einsums.append(e)
        elif keys not in e.reduced:
            einsums.append(cut_up)
        else:
            partial = Tensor(f"{e.output.name}_{PART}", (part, *e.output.indices), b_part)
            einsums += [replace(cut_up, output=partial), Einsum(e.output, (partial,), Map.COPY, e.reduce)]
    return replace(graph, einsums=tuple(einsums))


def _is_made(graph: Graph, tensor: Tensor) -> bool:
    """Whether *tensor* is computed, neither read nor generated; a view is where what it shows is."""
    e = graph.producers.get(tensor.name)
    if e is not None and e.map is Map.VIEW:
        return _is_made(graph, e.inputs[0])
    return e is not None and not e.map.is_generated


def says_which_keys(graph: Graph, keys: Index) -> bool:
    """Whether every mask over *keys* tells them apart by where they stand."""
    masks = [e.domain for e in graph.einsums if e.domain is not None and keys.name in e.domain.axes]
    return not any(isinstance(mask, Density | BlockList) or mask.row == keys.name for mask in masks)


def _no_softmax(graph: Graph, keys: Index) -> bool:
    return not any(e.map.is_opaque and e.output.indices[-1] == keys for e in graph.einsums)


def _no_output(graph: Graph, keys: Index) -> bool:
    return not any(keys in graph.tensors[name].indices for name in graph.outputs)


def _graph(*, masked: bool = False, opaque: bool = False, leaves: bool = False) -> Graph:
    """The row maximum of scores, their product with V, and the sum of the keys' positions."""
    q, k, e = Index("q", N_q), Index("k", N_k), Index("e", d_v)
    s, v, p = Tensor("S", (q, k), b_s), Tensor("V", (k, e), b), Tensor("P", (q, k), b_s)
    mask = Density("block-sparse", "a share is kept", "q", "k", N_q, N_k, share=symbol("s")) if masked else None
    einsums: tuple[Einsum, ...] = (
        Einsum(Tensor("m", (q,), b_l), (s,), Map.COPY, Reduce.MAX, mask),
        Einsum(p, (s,), Map.SOFTMAX if opaque else Map.EXP, None, mask),
        Einsum(Tensor("O", (q, e), b), (p, v), Map.MUL, Reduce.SUM, mask),
    )
    x, total = Tensor("x", (k,), b), Tensor("t", (), b)
    einsums += (Einsum(x, (), Map.POSITION), Einsum(total, (x,), Map.COPY, Reduce.SUM))
    return Graph(einsums, ("m", "O", "t", *(("P",) if leaves else ())))


RULE = Rule(
    name="split-keys",
    claim="the keys are cut into n_s parts; sums and maxima over them are taken within each part, then over the parts",
    reference="Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html; arXiv:1805.02867",
    shape=shape,
    preconditions=(
        Precondition(
            says="a mask says which keys each query sees, and not only how many or in which blocks, so each part knows its own",
            holds=says_which_keys,
            counterexample=lambda: _graph(masked=True),
        ),
        Precondition(
            says="no softmax normalises over the keys: it must be opened first",
            holds=_no_softmax,
            counterexample=lambda: _graph(opaque=True),
        ),
        Precondition(
            says="no output carries the keys, so that what is left has the indices it had",
            holds=_no_output,
            counterexample=lambda: _graph(leaves=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

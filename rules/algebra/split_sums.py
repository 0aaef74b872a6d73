r"""Add up parts of the keys apart: what is summed over k for each query is summed within each part, and then over the parts.

    sum_k dS[q,k] K[k,d]   =   sum_s ( sum_k dS[q,s,k] K[s,k,d] ),        sum_q dS[q,k] Q[q,d] in parts:  dK[s,k,d]

Precondition  a mask says which keys it keeps, not only how many; nothing needs the keys whole or in order; no sum follows a
              running maximum; n_s divides N_k (a number, checked where numbers are).
Proof         addition is associative: the points of a sum are the same, taken part by part. Key k of part s is key
              s N_k/n_s + k of all, so a mask keeps the pairs that it kept, and what is made of positions or drawn for a pair is
              what it was. (s, k) stands wherever k stood, with k fastest: the same elements, the same bytes, results too.
Effect        the sums of different parts do not meet: each has a copy of its own, n_s of them, and a further pass adds them up
              in an order that is always the same. The published kernel deals its key tiles to the parts round robin; here each
              part is contiguous, which moves the same bytes.
Reference     Dao-AILab/flash-attention, flash_bwd_launch_template.h and flash_bwd_preprocess_kernel.h (deterministic=True:
              dq_accum has nsplits copies, convert_dQ adds them up).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from derive.density import Density
from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.mask import Mask
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_part, d, n_s, symbol
from rules.algebra.split_keys import CUT, PART, says_which_keys

ROW = "q"
"""The index of what a sum over the keys is made for."""


@dataclass(frozen=True)
class Match:
    """Where the rule may apply.

    Attributes:
        keys: the index that is cut.
        sums: what is summed over it for each query.
    """

    keys: Index
    sums: tuple[Einsum, ...]


def shape(graph: Graph) -> Iterator[Match]:
    """The keys, not cut yet, and the sums over them of what runs over queries too."""
    keys = graph.indices.get(CUT)
    if keys is None or PART in graph.indices:
        return
    sums = (e for e in graph.einsums if e.reduce is Reduce.SUM and keys in e.reduced)
    if found := tuple(e for e in sums if ROW in {i.name for i in e.space}):
        yield Match(keys, found)


def rewrite(graph: Graph, match: Match) -> Graph:
    """(s, k) in the place of every k; each of the sums is taken over k, then over s."""
    keys = match.keys
    part, inside = Index(PART, n_s, part_of=CUT), Index(CUT, keys.extent / n_s)

    def cut(tensor: Tensor) -> Tensor:
        indices = (new for i in tensor.indices for new in ((part, inside) if i == keys else (i,)))
        return replace(tensor, indices=tuple(indices))

    def masked(mask: Mask | None) -> Mask | None:
        return mask.cut(PART, n_s) if mask is not None and mask.column == CUT else mask

    einsums: list[Einsum] = []
    for e in graph.einsums:
        read, kept = tuple(map(cut, e.inputs)), masked(e.domain)
        if e in match.sums:
            (name,) = graph.unused(PART, f"{e.output.name}_{PART}")
            own = Tensor(name, (part, *e.output.indices), b_part)
            partial = replace(e, output=own, inputs=read, domain=kept)
            einsums += [partial, Einsum(e.output, (own,), Map.COPY, Reduce.SUM)]
        else:
            einsums.append(replace(e, output=cut(e.output), inputs=read, domain=kept))
    return replace(graph, einsums=tuple(einsums))


def _needs_whole_keys(e: Einsum, keys: Index) -> bool:
    """Whether an Einsum normalises over the keys, selects, inverts or renames some, or steps along them."""
    touched = {i for t in (e.output, *e.inputs) for i in t.indices}
    normalises = e.map.is_opaque and e.output.indices[-1] == keys
    renamed = {*e.renamed, *e.renamed.values()}
    return (
        normalises
        or (e.map.is_selection and keys in touched)
        or keys.name in {*renamed, e.previous}
        or keys in e.inverted
    )


def _keys_may_be_cut(graph: Graph, match: Match) -> bool:
    return not any(_needs_whole_keys(e, match.keys) for e in graph.einsums)


def _sums_are_plain(graph: Graph, match: Match) -> bool:
    return all(e.rescale is None for e in match.sums)


def _graph(*, opaque: bool = False, running: bool = False, dense: bool = False) -> Graph:
    """Weights with keys summed for each query, with queries summed for each key, and with the latter summed over all keys.

    The weights are a softmax, exponentials that follow a running maximum, or under a mask that says how many it keeps.
    """
    weights = "P[q,k] = softmax(S[q,k])" if opaque else "P[q,k] = exp(S[q,k])"
    if running:
        weights = "m[q] = max[k] S[q,k]\nX[q,k] = S[q,k] - m[q]\nP[q,k] = exp(X[q,k])"
    text = f"""{weights}
        A[q,d] = sum[k] P[q,k] * K[k,d]
        G[k,d] = sum[q] P[q,k] * Q[q,d]
        w[d]   = sum[k] G[k,d] * K[k,d]
    """
    mask = Density("block-sparse", "a share is kept", ROW, CUT, N_q, N_k, share=symbol("s")) if dense else None
    graph = cascade(text, {ROW: N_q, CUT: N_k, "d": d}, outputs=("A", "G", "w"), width=b, mask=mask)
    total = graph.producers["A"]
    return graph.replace((total,), (replace(total, rescale="m"),)) if running else graph


RULE = Rule(
    name="split-sums",
    claim="the keys are cut into n_s parts; each query's sums over them are taken within each part, then over the parts",
    reference="Dao-AILab/flash-attention, flash_bwd_launch_template.h (deterministic=True)",
    shape=shape,
    preconditions=(
        Precondition(
            says="a mask says which keys each query sees, and not only how many or in which blocks, so each part knows its own",
            holds=lambda graph, match: says_which_keys(graph, match.keys),
            counterexample=lambda: _graph(dense=True),
        ),
        Precondition(
            says="nothing needs the keys whole or in order: no softmax, selection, inverse, view or recurrence runs along them",
            holds=_keys_may_be_cut,
            counterexample=lambda: _graph(opaque=True),
        ),
        Precondition(
            says="the sums are plain: none follows a running maximum, which a part would not see rise in another",
            holds=_sums_are_plain,
            counterexample=lambda: _graph(running=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

r"""Cut a recurrence that only adds up into chunks: inside one as attention without a softmax, between them by a state.

    J_t = J_{t-1} + K_t V_t,    O_t = sum_d Q_t J_t

      =   O_{n,q} = sum_d Q_{n,q} H_n + sum_{k <= q} (sum_d Q_{n,q} K_{n,k}) V_{n,k},   H_{n+1} = H_n + sum_k K_{n,k} V_{n,k}

Precondition  nothing else runs over the tokens; neither states nor what enters them is an output; values carry none of what the
              query's sum runs over. C_t divides the tokens (a number, checked where numbers are).
Proof         token q of chunk n is token n C_t + q of all, and J there is the sum of K V over the chunks before, which is H_n,
              and over the tokens of its own chunk up to itself. The query's sum is linear, and V stands outside it.
Effect        N/C_t states of d d_v in the place of N, and matrix products of C_t tokens in the place of outer products of one;
              C_t (C_t + 1)/2 pairs a chunk are computed in their stead.
Reference     Yang et al. 2023, arXiv:2312.06635, section 2.2 (the chunkwise form); Katharopoulos et al. 2020, arXiv:2006.16236.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.mask import causal
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.symbols import C_t, N_q, b, b_s, d, d_v

CHUNK, BEFORE = "n", "k"
"""The index that says which chunk, and the one of the tokens of a chunk that one of its tokens sees."""


class Match(NamedTuple):
    """H, J = H + X, X = K V and O = sum Q J, along one index of tokens.

    Attributes:
        state: H, the state before a token.
        update: X, what the token adds to it.
        after: J, the state after it.
        answer: O, the sum that asks it.
        token: the index of the tokens.
        query, key, value: Q, K and V; the key carries what the answer sums over.
    """

    state: Einsum
    update: Einsum
    after: Einsum
    answer: Einsum
    token: Index
    query: Tensor
    key: Tensor
    value: Tensor


def shape(graph: Graph) -> Iterator[Match]:
    """States that a product of two is added to, and that a sum of products asks; no index of chunks is there yet."""
    if {CHUNK, BEFORE} & graph.indices.keys():
        return
    for state in graph.einsums:
        after = graph.producers.get(state.inputs[0].name) if state.previous is not None else None
        if after is None or after.map is not Map.ADD or state.output not in after.inputs or after.domain is not None:
            continue
        added = next((t.name for t in after.inputs if t != state.output), "")
        update = graph.producers.get(added)
        token = graph.indices[state.previous or ""]
        if update is None or update.map is not Map.MUL or update.reduce is not None or update.domain is not None:
            continue
        for answer in graph.readers[after.output.name]:
            asks = answer.map is Map.MUL and answer.reduce is Reduce.SUM and answer.domain is None
            query = next((t for t in answer.inputs if t != after.output), None)
            if not asks or query is None or not all(token in t.indices for t in (query, *update.inputs)):
                continue
            key, value = sorted(update.inputs, key=lambda t: not set(answer.reduced) <= set(t.indices))
            if token not in answer.reduced:
                yield Match(state, update, after, answer, token, query, key, value)


def rewrite(graph: Graph, match: Match) -> Graph:
    """States by chunk, pairs of the tokens of a chunk, and the sum of what both answer."""
    state, update, after, answer, token, query, key, value = match
    n, q, k = Index(CHUNK, token.extent / C_t, part_of=token.name), Index(token.name, C_t), Index(BEFORE, C_t)

    def by_token(tensor: Tensor) -> Tensor:
        return replace(tensor, indices=_put(tensor.indices, token, n, q))

    def by_chunk(tensor: Tensor) -> Tensor:
        return replace(tensor, indices=_put(tensor.indices, token, n))

    def before(name: str, tensor: Tensor) -> Tensor:
        return replace(tensor, name=name, indices=_put(tensor.indices, token, n, k))

    (keys, values, scores, inside, outside) = graph.unused(CHUNK, f"{key.name}_k", f"{value.name}_k", "S", "Y", "Z")
    summed = set(answer.reduced)
    paired = dict.fromkeys(i for t in (query, key) for i in t.indices if i not in summed and i != token)
    s = Tensor(scores, (*paired, n, q, k), b_s)
    mask = replace(
        causal(C_t, C_t, row=q.name, column=k.name), says="causal in each chunk: token q sees tokens 0..q of it"
    )
    key_k, value_k, answered = before(keys, key), before(values, value), by_token(answer.output)
    y, z = replace(answered, name=inside), replace(answered, name=outside)
    made = (
        Einsum(by_chunk(update.output), (by_token(key), by_token(value)), Map.MUL, Reduce.SUM),
        Einsum(by_chunk(state.output), (by_chunk(after.output),), Map.COPY, previous=CHUNK),
        Einsum(by_chunk(after.output), (by_chunk(state.output), by_chunk(update.output)), Map.ADD),
        Einsum(key_k, (by_token(key),), Map.VIEW),
        Einsum(value_k, (by_token(value),), Map.VIEW),
        Einsum(s, (by_token(query), key_k), Map.MUL, Reduce.SUM, mask),
        Einsum(y, (s, value_k), Map.MUL, Reduce.SUM, mask),
        Einsum(z, (by_token(query), by_chunk(state.output)), Map.MUL, Reduce.SUM),
        Einsum(answered, (y, z), Map.ADD),
    )
    return graph.replace((state, update, after, answer), made)


def _put(indices: tuple[Index, ...], old: Index, *new: Index) -> tuple[Index, ...]:
    return tuple(x for i in indices for x in (new if i == old else (i,)))


def _nothing_else_runs_over_tokens(graph: Graph, match: Match) -> bool:
    own = (match.state, match.update, match.after, match.answer)
    return not any(match.token in (*e.space, *e.output.indices) for e in (*graph.einsums, *graph.given) if e not in own)


def _states_stay(graph: Graph, match: Match) -> bool:
    return not {match.state.output.name, match.update.output.name, match.after.output.name} & set(graph.outputs)


def _values_stand_outside(_: Graph, match: Match) -> bool:
    return not set(match.answer.reduced) & set(match.value.indices)


def _graph(*, scaled: bool = False, kept: bool = False, wide: bool = False) -> Graph:
    """Linear attention token by token; with a scaled query, the state left, or values of each channel of the keys."""
    text = f"""
        {"Qs[q,d] = Q[q,d] * c" if scaled else ""}
        H[q,d,e] = previous[q] J[q,d,e]
        X[q,d,e] = K[q,d] * {"V[q,d,e]" if wide else "V[q,e]"}
        J[q,d,e] = H[q,d,e] + X[q,d,e]
        O[q,e]   = sum[d] {"Qs" if scaled else "Q"}[q,d] * J[q,d,e]
    """
    outputs = ("O", "J") if kept else ("O",)
    return cascade(text, {"q": N_q, "d": d, "e": d_v}, outputs=outputs, width=b)


RULE = Rule(
    name="chunk-recurrence",
    claim="a recurrence that adds products up runs in chunks of C_t tokens: pairs inside a chunk, one state between two",
    reference="arXiv:2312.06635, section 2.2; arXiv:2006.16236",
    shape=shape,
    preconditions=(
        Precondition(
            says="nothing else runs over the tokens: not what makes queries, keys or values, nor what reads states or answers",
            holds=_nothing_else_runs_over_tokens,
            counterexample=lambda: _graph(scaled=True),
        ),
        Precondition(
            says="neither the states nor what enters them is an output",
            holds=_states_stay,
            counterexample=lambda: _graph(kept=True),
        ),
        Precondition(
            says="values carry none of what the query's sum runs over, so that they stand outside it",
            holds=_values_stand_outside,
            counterexample=lambda: _graph(wide=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

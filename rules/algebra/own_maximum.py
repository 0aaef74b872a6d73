r"""Let each part's exponentials be relative to the part's own maximum, and repair its sums when the parts are merged.

    sum_s sum_k exp(S[s,q,k] - m[q]) V[s,k,e]   =   sum_s exp(m_s[s,q] - m[q]) sum_k exp(S[s,q,k] - m_s[s,q]) V[s,k,e]

with m = max_s m_s: the merge of the states (m_s, l_s, U_s), a commutative monoid.

Precondition  the shifted scores are only exponentiated; the exponentials are only summed, linearly and over what m_s runs
              over; each sum is only added up over the parts; all run over the same pairs.
Proof         exp(S - m) = exp(m_s - m) exp(S - m_s), and the first factor is constant in k: it leaves the sum.
Effect        no part waits for another: the pass over k that waited for m is gone. One exponential a row and part, and one
              product an element of each partial result, are added.
Reference     Dao et al. 2023, Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html; Ye et al. 2025, FlashInfer,
              arXiv:2501.01005, section 2.2 (attention states and their merge).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.mask import causal
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_part, b_s, d_v, n_s
from rules.algebra.online_softmax import is_linear


@dataclass(frozen=True)
class Match:
    """Where the rule may apply.

    Attributes:
        part: the maximum within each part.
        maximum: the maximum over the parts.
        shift, exponential: what is made of the scores.
        sums: the sums of the exponentials.
    """

    part: Einsum
    maximum: Einsum
    shift: Einsum
    exponential: Einsum
    sums: tuple[Einsum, ...]


def shape(graph: Graph) -> Iterator[Match]:
    """Sums of exp(S - m), where m is the maximum over the parts of maxima of S."""
    for maximum in (e for e in graph.einsums if e.reduce is Reduce.MAX):
        part = graph.producers.get(maximum.inputs[0].name)
        if part is None or any(e.map is not Map.COPY or e.reduce is not Reduce.MAX for e in (maximum, part)):
            continue
        for shift in graph.readers.get(maximum.output.name, ()):
            if shift.map is not Map.SUB or shift.reduced or shift.inputs != (part.inputs[0], maximum.output):
                continue
            for exponential in graph.readers.get(shift.output.name, ()):
                sums = tuple(e for e in graph.readers.get(exponential.output.name, ()) if e.reduce is Reduce.SUM)
                if exponential.map is Map.EXP and not exponential.reduced and sums:
                    yield Match(part, maximum, shift, exponential, sums)


def rewrite(graph: Graph, match: Match) -> Graph:
    """Shift by the part's maximum; weigh the sums by exp(m_s - m) as they are added up."""
    part, m = match.part.output, match.maximum.output
    ahead = Tensor(f"X_{m.name}", part.indices, part.width)
    weight = Tensor(f"w_{m.name}", part.indices, part.width)
    weights = (Einsum(ahead, (part, m), Map.SUB), Einsum(weight, (ahead,), Map.EXP))
    graph = graph.replace((match.shift,), (replace(match.shift, inputs=(match.shift.inputs[0], part)),))
    graph = graph.replace((match.maximum,), (match.maximum, *weights))
    for total in match.sums:
        for merge in graph.readers[total.output.name]:
            graph = graph.replace((merge,), (replace(merge, inputs=(weight, total.output), map=Map.MUL),))
    return graph


def _shift_is_only_exponentiated(graph: Graph, match: Match) -> bool:
    name = match.shift.output.name
    return graph.readers[name] == (match.exponential,) and name not in graph.outputs


def _exponential_is_only_summed(graph: Graph, match: Match) -> bool:
    name = match.exponential.output.name
    return graph.readers[name] == match.sums and name not in graph.outputs


def _sums_run_over_the_same(graph: Graph, match: Match) -> bool:
    return all(set(e.reduced) == set(match.part.reduced) for e in match.sums)


def _sums_are_linear(graph: Graph, match: Match) -> bool:
    return all(is_linear(e, match.exponential.output) for e in match.sums)


def _sums_are_only_added_up(graph: Graph, match: Match) -> bool:
    for total in match.sums:
        readers = graph.readers.get(total.output.name, ())
        if total.output.name in graph.outputs or not readers:
            return False
        if any(e.map is not Map.COPY or e.reduce is not Reduce.SUM for e in readers):
            return False
    return True


def _same_pairs(graph: Graph, match: Match) -> bool:
    return all(e.domain == match.part.domain for e in (match.shift, match.exponential, *match.sums))


def _graph(
    *,
    shifted_sum: bool = False,
    quotient: bool = False,
    total: bool = False,
    squared: bool = False,
    partial: bool = False,
    masked: bool = False,
) -> Graph:
    """L and U from exp(S - m), part by part; each flag adds a reader, or a mask, under which no part may stand alone."""
    s, q, k, e = Index("s", n_s), Index("q", N_q), Index("k", N_k), Index("e", d_v)
    scores, v = Tensor("S", (s, q, k), b_s), Tensor("V", (s, k, e), b)
    m_s, m = Tensor("m_s", (s, q), b_part), Tensor("m", (q,), b_l)
    x, ex = Tensor("X", (s, q, k), b_s), Tensor("E", (s, q, k), b_s)
    l_s, low = Tensor("l_s", (s, q), b_part), Tensor("l", (q,), b_l)
    u_s, u, o = Tensor("U_s", (s, q, e), b_part), Tensor("U", (q, e), b), Tensor("O", (q, e), b)
    einsums = [
        Einsum(m_s, (scores,), Map.COPY, Reduce.MAX),
        Einsum(m, (m_s,), Map.COPY, Reduce.MAX),
        Einsum(x, (scores, m), Map.SUB, None, causal(N_q, N_k) if masked else None),
        Einsum(ex, (x,), Map.EXP),
        Einsum(l_s, (ex,), Map.COPY, Reduce.SUM),
        Einsum(low, (l_s,), Map.COPY, Reduce.SUM),
        Einsum(u_s, (ex, v), Map.MUL, Reduce.SUM),
        Einsum(u, (u_s,), Map.COPY, Reduce.SUM),
        Einsum(o, (u, low), Map.DIV),
    ]
    more = {
        "c1": (shifted_sum, Einsum(Tensor("c1", (s, q), b_l), (x,), Map.COPY, Reduce.SUM)),
        "c2": (quotient, Einsum(Tensor("c2", (s, q, k), b_l), (ex, low), Map.DIV)),
        "c3": (total, Einsum(Tensor("c3", (s,), b_l), (ex,), Map.COPY, Reduce.SUM)),
        "c4": (squared, Einsum(Tensor("c4", (s, q), b_l), (ex, ex), Map.MUL, Reduce.SUM)),
    }
    added = {name: e for name, (wanted, e) in more.items() if wanted}
    einsums += added.values()
    for name in added.keys() & {"c3", "c4"}:
        tensor = added[name].output
        einsums.append(Einsum(Tensor(f"{name}_sum", tensor.indices[1:], b_l), (tensor,), Map.COPY, Reduce.SUM))
    left = {"c1": "c1", "c2": "c2", "c3": "c3_sum", "c4": "c4_sum"}
    outputs = ("O", *(left[name] for name in added), *(("l_s",) if partial else ()))
    return Graph(tuple(einsums), outputs)


RULE = Rule(
    name="own-maximum",
    claim="each part shifts by its own maximum m_s; its sums are weighed by exp(m_s - m) when the parts are merged",
    reference="Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html; arXiv:2501.01005, section 2.2",
    shape=shape,
    preconditions=(
        Precondition(
            says="the shifted scores are only exponentiated",
            holds=_shift_is_only_exponentiated,
            counterexample=lambda: _graph(shifted_sum=True),
        ),
        Precondition(
            says="the exponentials are only summed (the division has been deferred)",
            holds=_exponential_is_only_summed,
            counterexample=lambda: _graph(quotient=True),
        ),
        Precondition(
            says="every sum runs over exactly what the part's maximum runs over",
            holds=_sums_run_over_the_same,
            counterexample=lambda: _graph(total=True),
        ),
        Precondition(
            says="every sum is linear in the exponentials, so that one factor repairs it",
            holds=_sums_are_linear,
            counterexample=lambda: _graph(squared=True),
        ),
        Precondition(
            says="the sum of a part is only added up over the parts, and is no output",
            holds=_sums_are_only_added_up,
            counterexample=lambda: _graph(partial=True),
        ),
        Precondition(
            says="maximum, shift, exponentials and sums run over the same pairs",
            holds=_same_pairs,
            counterexample=lambda: _graph(masked=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

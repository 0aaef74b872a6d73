r"""Let the sums of exponentials follow the running maximum: (m, l, U) is a monoid, so all three stream in one pass.

    (m1, a1) + (m2, a2)  =  (m, a1 exp(m1 - m) + a2 exp(m2 - m)),    m = max(m1, m2)

for a = l and for a = U: each partial sum is held relative to the maximum seen so far, and repaired when that rises.

Precondition  the shifted scores are only exponentiated; the exponentials, and what is made of them element by element, are
              only summed over k, each sum running over exactly what the maximum runs over; all of it is linear in them, by
              factors that wait for no pass over k; the maximum is read by the shift alone.
Proof         + above is associative and commutative with unit (-inf, 0), since exp(x - m1) exp(m1 - m) = exp(x - m);
              summing (s_k, v_k) with it gives (max s, sum_k exp(s_k - max s) v_k).
Effect        passes over k go from 2 to 1; each trip adds one exponential a row and one product an accumulated element.
              In floating point each rescaling rounds once more, so the relative error grows by at most one unit in the last
              place a trip.
Reference     Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3; Dao et al. 2022, arXiv:2205.14135, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.graph import Graph
from derive.rewrite import Precondition, Rule
from derive.symbols import N_k, N_q, b, b_l, b_s, d_v

Match = tuple[Einsum, Einsum, Einsum, tuple[Einsum, ...], tuple[Einsum, ...]]


def shape(graph: Graph) -> Iterator[Match]:
    """(maximum, shift, exponential, links, sums): sums of exp(S - m), or of what links make of it element by element."""
    for maximum in graph.einsums:
        if maximum.reduce is not Reduce.MAX:
            continue
        for shift in graph.readers.get(maximum.output.name, ()):
            if shift.map is not Map.SUB or shift.inputs != (maximum.inputs[0], maximum.output):
                continue
            for exponential in graph.readers.get(shift.output.name, ()):
                if exponential.map is not Map.EXP:
                    continue
                links = _links(graph, exponential)
                terms = {e.output.name for e in (exponential, *links)}
                readers = (e for e in graph.einsums if terms & {t.name for t in e.inputs})
                sums = tuple(e for e in readers if e.reduce is Reduce.SUM and set(maximum.reduced) & set(e.reduced))
                if any(e.rescale is None for e in sums):
                    yield maximum, shift, exponential, links, sums


def _links(graph: Graph, exponential: Einsum) -> tuple[Einsum, ...]:
    """Products, quotients and copies of the exponentials element by element, at any remove."""
    found = [exponential]
    for e in graph.einsums:
        read = [t for t in e.inputs if t in [x.output for x in found]]
        over_keys = set(exponential.output.indices) <= set(e.output.indices)
        if read and e.reduce is None and over_keys and is_linear(e, read[0]) and e not in found:
            found.append(e)
    return tuple(found[1:])


def is_linear(e: Einsum, term: Tensor) -> bool:
    """Whether *e* is *term*, times or over what does not contain it."""
    by = e.map in (Map.COPY, Map.MUL) or (e.map is Map.DIV and e.inputs[0] == term)
    return e.inputs.count(term) == 1 and by


def rewrite(graph: Graph, match: Match) -> Graph:
    """Rescale each sum by the running maximum."""
    maximum, _, _, _, sums = match
    for e in sums:
        graph = graph.replace((e,), (replace(e, rescale=maximum.output.name),))
    return graph


def _shift_is_only_exponentiated(graph: Graph, match: Match) -> bool:
    _, shift, exponential, _, _ = match
    return graph.readers[shift.output.name] == (exponential,) and shift.output.name not in graph.outputs


def _exponential_is_only_summed(graph: Graph, match: Match) -> bool:
    _, _, exponential, links, sums = match
    return all(
        e.output.name not in graph.outputs
        and all(reader in (*links, *sums) for reader in graph.readers.get(e.output.name, ()))
        for e in (exponential, *links)
    )


def _sums_run_over_the_same(graph: Graph, match: Match) -> bool:
    maximum, _, _, _, sums = match
    return all(set(maximum.reduced) == set(e.reduced) for e in sums)


def _sums_are_linear(graph: Graph, match: Match) -> bool:
    maximum, _, exponential, links, sums = match
    terms = [e.output for e in (exponential, *links)]
    waiting = _after_a_pass(graph, maximum)
    for e in (*links, *sums):
        read = [t for t in e.inputs if t in terms]
        others = [t for t in e.inputs if t != read[0]]
        if len(read) != 1 or not is_linear(e, read[0]) or any(t.name in waiting for t in others):
            return False
    return True


def _after_a_pass(graph: Graph, maximum: Einsum) -> set[str]:
    """Tensors that depend on a reduction over what the maximum runs over."""
    found: set[str] = set()
    for e in graph.einsums:
        if set(maximum.reduced) & set(e.reduced) or any(t.name in found for t in e.inputs):
            found.add(e.output.name)
    return found


def _maximum_only_shifts(graph: Graph, match: Match) -> bool:
    maximum, shift, _, _, _ = match
    others = (e for e in graph.readers[maximum.output.name] if e != shift)
    return not any(set(maximum.reduced) & set(e.space) for e in others)


def _graph(
    *,
    quotient: bool = False,
    shifted_sum: bool = False,
    centred: bool = False,
    total: bool = False,
    squared: bool = False,
) -> Graph:
    """L and U from exp(S - m); each flag adds a reader that no running maximum can serve."""
    q, k, e = Index("q", N_q), Index("k", N_k), Index("e", d_v)
    s, v = Tensor("S", (q, k), b_s), Tensor("V", (k, e), b)
    m, low = Tensor("m", (q,), b_l), Tensor("l", (q,), b_l)
    x, ex = Tensor("X", (q, k), b_s), Tensor("E", (q, k), b_s)
    u, o = Tensor("U_O", (q, e), b), Tensor("O", (q, e), b)
    einsums = [
        Einsum(m, (s,), Map.COPY, Reduce.MAX),
        Einsum(x, (s, m), Map.SUB),
        Einsum(ex, (x,), Map.EXP),
        Einsum(low, (ex,), Map.COPY, Reduce.SUM),
        Einsum(u, (ex, v), Map.MUL, Reduce.SUM),
        Einsum(o, (u, low), Map.DIV),
    ]
    outputs = ["O"]
    if quotient:
        einsums.append(Einsum(Tensor("P", (q, k), b_s), (ex, Tensor("a", (q,), b)), Map.DIV))
        outputs.append("P")
    if shifted_sum:
        einsums.append(Einsum(Tensor("c1", (q,), b_l), (x,), Map.COPY, Reduce.SUM))
        outputs.append("c1")
    if centred:
        einsums.append(Einsum(Tensor("c2", (q,), b_l), (s, m), Map.MUL, Reduce.SUM))
        outputs.append("c2")
    if total:
        einsums.append(Einsum(Tensor("c3", (), b_l), (ex,), Map.COPY, Reduce.SUM))
        outputs.append("c3")
    if squared:
        einsums.append(Einsum(Tensor("c4", (q,), b_l), (ex, ex), Map.MUL, Reduce.SUM))
        outputs.append("c4")
    return Graph(tuple(einsums), tuple(outputs))


RULE = Rule(
    name="online-softmax",
    claim="l and U are held relative to the running maximum and rescaled when it rises, so one pass over k is enough",
    reference="arXiv:1805.02867, algorithm 3; arXiv:2205.14135, section 3.1",
    shape=shape,
    preconditions=(
        Precondition(
            says="the shifted scores are only exponentiated",
            holds=_shift_is_only_exponentiated,
            counterexample=lambda: _graph(shifted_sum=True),
        ),
        Precondition(
            says="the exponentials, and what is made of them point by point, are only summed over k (divisions are deferred)",
            holds=_exponential_is_only_summed,
            counterexample=lambda: _graph(quotient=True),
        ),
        Precondition(
            says="every sum runs over exactly what its maximum runs over",
            holds=_sums_run_over_the_same,
            counterexample=lambda: _graph(total=True),
        ),
        Precondition(
            says="every sum is linear in the exponentials, by factors that wait for no pass over k, so one factor repairs it",
            holds=_sums_are_linear,
            counterexample=lambda: _graph(squared=True),
        ),
        Precondition(
            says="while k runs, the maximum is read by the shift alone",
            holds=_maximum_only_shifts,
            counterexample=lambda: _graph(centred=True),
        ),
    ),
    rewrite=rewrite,
    example=_graph,
)

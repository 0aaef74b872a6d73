"""Put what belongs together into one kernel, wherever it stands in the program: all pairs, a softmax, or one accumulator.

    S = Q K^T;  P = softmax(S);  O = P V   =   one kernel S, P, O: what is as large as q times k never leaves the SM

Precondition  no kernel of the run has loops yet; nothing outside the run stands between two of its kernels.
Proof         the merged kernel runs the same Einsums in the same order; what it needs from outside runs before it, the rest
              after it.
Effect        each intermediate private to the run saves one write and one read of itself; projections of K and V, which run
              once and not once a query tile, stay kernels of their own.
Reference     Dao et al. 2022, arXiv:2205.14135, section 3.1 (kernel fusion).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from derive.einsum import Einsum, Map, Reduce
from derive.flops import is_accumulated, is_contraction
from derive.graph import Graph
from derive.notation import cascade
from derive.rewrite import Precondition, Rule
from derive.schedule import Kernel, Schedule, lift
from derive.symbols import N_k, N_q, b, d, d_v, h
from rules.schedule.examples import streaming
from rules.schedule.fuse import Match, fusion

PAIR = frozenset({"q", "k"})
OTHER_KEYS = ("p", "j", "t")
"""Further sorts of keys: those of a prefix or compressed ones, those that some are selected from, and selected blocks."""


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """One kernel for the whole run, after all that it needs."""
    needed = _before(schedule, match)
    first = [k for k in schedule.kernels if k not in match and k in needed]
    rest = [k for k in schedule.kernels if k not in match and k not in needed]
    merged = Kernel(tuple(name for kernel in match for name in kernel.einsums))
    return Schedule(schedule.graph, (*first, merged, *rest))


def _before(schedule: Schedule, match: Match) -> set[Kernel]:
    """Kernels whose results the run needs, at any remove."""
    found: set[Kernel] = set()
    wanted = list(match)
    while wanted:
        for tensor in schedule.inputs_of(wanted.pop()):
            maker = schedule.kernel_of.get(tensor.name)
            if maker is not None and maker not in found and maker not in match:
                found.add(maker)
                wanted.append(maker)
    return found


def _together(schedule: Schedule, match: Match) -> bool:
    made = {name for kernel in match for name in kernel.einsums}
    return not any(t.name in made for k in _before(schedule, match) for t in schedule.inputs_of(k))


def runs_over_pairs(einsum: Einsum) -> bool:
    """Whether an Einsum pairs queries with keys."""
    return {i.name for i in einsum.space} >= PAIR


def _pairs(schedule: Schedule) -> Iterator[Match]:
    """All that runs over pairs, and what is pointwise just before and after it."""
    yield from _grown(schedule, {e.output.name for e in schedule.graph.einsums if runs_over_pairs(e)})


def _other_keys(schedule: Schedule) -> Iterator[Match]:
    """All that pairs a query with keys of another sort; a selection of some of them needs whole rows of scores."""
    for keys in OTHER_KEYS:
        over = (e for e in schedule.graph.einsums if {i.name for i in e.space} >= {"q", keys})
        yield from _grown(schedule, {e.output.name for e in over if e.map is not Map.TOP})


def _grown(schedule: Schedule, names: set[str]) -> Iterator[Match]:
    """*names*, and what is pointwise just before and after them."""
    graph = schedule.graph
    grown = True
    while grown and names:
        found = {e.output.name for e in graph.einsums if e.output.name not in names and _is_around(graph, e, names)}
        grown, names = bool(found), names | found
    yield from _run(schedule, names)


def _is_around(graph: Graph, e: Einsum, names: set[str]) -> bool:
    """Whether *e* is pointwise and follows what *names* says, or makes of inputs alone what only that reads.

    What is gathered from pages is made of inputs; another selection may need more than stands at its point.
    """
    if e.reduced or (e.map.is_selection and e.paging is None):
        return False
    read = {t.name for t in e.inputs if t.name in graph.producers}
    if read and read <= names and not e.map.is_selection:
        return True
    readers = {r.output.name for r in graph.readers.get(e.output.name, ())}
    return bool(readers) and readers <= names and e.output.name not in graph.outputs and _is_of_inputs(graph, e)


def _is_of_inputs(graph: Graph, e: Einsum) -> bool:
    """Whether *e* is made of inputs and of what is generated, point by point."""
    makers = (graph.producers[t.name] for t in e.inputs if t.name in graph.producers)
    return not e.reduced and all(_is_of_inputs(graph, maker) for maker in makers)


def _softmaxes(schedule: Schedule) -> Iterator[Match]:
    """From a maximum over the keys to the quotients by sums of what was shifted by it."""
    graph = schedule.graph
    for maximum in graph.einsums:
        if maximum.reduce is not Reduce.MAX:
            continue
        after = {maximum.output.name}
        for e in graph.einsums:
            if any(t.name in after for t in e.inputs):
                after.add(e.output.name)
        ends = [e for e in graph.einsums if e.output.name in after and _normalises(e, maximum)]
        needed = {e.output.name for e in ends}
        for e in reversed(graph.einsums):
            if e.output.name in needed:
                needed |= {t.name for t in e.inputs}
        products = {e.output.name for e in graph.einsums if is_contraction(e)}
        yield from _run(schedule, (after & needed) - products)


def _accumulators(schedule: Schedule) -> Iterator[Match]:
    """Two products and their sum, where nothing else reads the products."""
    for e in schedule.graph.einsums:
        if is_accumulated(schedule.graph, e):
            makers = {n for t in e.inputs for n in schedule.kernel_of[t.name].einsums}
            yield from _run(schedule, {e.output.name, *makers})


def _normalises(e: Einsum, maximum: Einsum) -> bool:
    """Whether *e* divides what runs over the keys by what does not."""
    over = set(maximum.reduced)
    return e.map is Map.DIV and bool(over & set(e.output.indices)) and not over & set(e.inputs[1].indices)


def _run(schedule: Schedule, names: set[str]) -> Iterator[Match]:
    """The kernels that run nothing but *names*, where they are several."""
    found = tuple(k for k in schedule.kernels if set(k.einsums) <= names)
    if len(found) > 1:
        yield found


def _rule(
    name: str,
    claim: str,
    shape: Callable[[Schedule], Iterator[Match]],
    graph: Callable[[], Graph],
    tiled: str,
    torn: Callable[[], Graph] | None,
) -> Rule[Schedule]:
    """A fusion of kernels that need not stand together; *torn* makes a graph in which something stands between, if any can."""
    whole = Precondition(
        says="nothing outside the run stands between two of its kernels",
        holds=_together,
        counterexample=lambda: lift((torn or graph)()),
    )
    return fusion(name, claim, shape, graph, (tiled,), *((whole,) if torn else ()), rewrite=rewrite)


def _product_between() -> Graph:
    """Pairs whose products are summed over e, and the sum applied to pairs again."""
    text = """
        U[q,e] = sum[k] A[q,k] * V[k,e]
        n[q]   = sum[e] U[q,e]
        Z[q,k] = A[q,k] * n[q]
    """
    return cascade(text, {"q": N_q, "k": N_k, "e": d_v}, outputs=("Z",), width=b)


def _of_scored(text: str, output: str) -> Graph:
    return cascade(text, {"q": N_q, "j": N_k, "i": h, "e": d_v}, outputs=(output,), width=b)


def _index_scores() -> Graph:
    """The scores of an indexer."""
    text = """
        X[i,q,j] = sum[e] Q[i,q,e] * K[j,e]
        R[i,q,j] = relu(X[i,q,j])
        I[q,j]   = sum[i] w[q,i] * R[i,q,j]
    """
    return _of_scored(text, "I")


def _scored_between() -> Graph:
    """Scores summed over all keys, and the sum applied to them again."""
    text = """
        U[q,e] = sum[j] A[q,j] * V[j,e]
        n[q]   = sum[e] U[q,e]
        Z[q,j] = A[q,j] * n[q]
    """
    return _of_scored(text, "Z")


def _softmax() -> Graph:
    """A softmax by itself."""
    text = """
        m[q]   = max[k] S[q,k]
        X[q,k] = S[q,k] - m[q]
        E[q,k] = exp(X[q,k])
        l[q]   = sum[k] E[q,k]
        P[q,k] = E[q,k] / l[q]
    """
    return cascade(text, {"q": N_q, "k": N_k}, outputs=("P",), width=b)


def _two_products() -> Graph:
    """Scores of two sorts of channels, added."""
    text = """
        A[q,k] = sum[d] Q[q,d] * K[k,d]
        B[q,k] = sum[e] R[q,e] * T[k,e]
        S[q,k] = A[q,k] + B[q,k]
    """
    return cascade(text, {"q": N_q, "k": N_k, "d": d, "e": d_v}, outputs=("S",), width=b)


def _product_inside() -> Graph:
    """A softmax whose exponentials are weighted by a product with themselves before they are divided."""
    text = """
        m[q]   = max[k] S[q,k]
        X[q,k] = S[q,k] - m[q]
        E[q,k] = exp(X[q,k])
        U[q,e] = sum[k] E[q,k] * V[k,e]
        G[q,k] = sum[e] U[q,e] * V[k,e]
        l[q]   = sum[k] E[q,k]
        P[q,k] = G[q,k] / l[q]
    """
    return cascade(text, {"q": N_q, "k": N_k, "e": d_v}, outputs=("P",), width=b)


PAIRS = _rule(
    "fuse-pairs",
    "all that pairs a query with a key, and what is pointwise around it, runs in one kernel: no score leaves the SM",
    _pairs,
    streaming,
    "S",
    _product_between,
)
KEYS = _rule(
    "fuse-keys",
    "all that pairs a query with compressed keys, selected blocks or keys to select from runs in one kernel for each",
    _other_keys,
    _index_scores,
    "X",
    _scored_between,
)
SOFTMAX = _rule(
    "fuse-softmax",
    "the operations of a softmax run in one kernel that holds a row of scores",
    _softmaxes,
    _softmax,
    "X",
    _product_inside,
)
ACCUMULATORS = _rule(
    "fuse-accumulator",
    "two matrix products that are added run in one kernel, the second into the first one's accumulator",
    _accumulators,
    _two_products,
    "B",
    None,
)
"""Nothing can stand between: of the products nothing but their sum is read."""
RULES = (PAIRS, KEYS, SOFTMAX, ACCUMULATORS)

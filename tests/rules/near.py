"""Graphs and schedules near a rule's example: the operators kept, what surrounds them redrawn.

Blind random graphs almost never have a rule's shape. These almost always have it, and break its clauses one at a time:
indices come and go, something else reads an intermediate, an intermediate is an output, a loop moves or joins the grid.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from random import Random

import sympy as sp

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.graph import Graph
from derive.mask import Mask, causal
from derive.notation import cascade
from derive.schedule import Kernel, Loop, Schedule
from derive.symbols import B_c, B_r, N_k, N_q, b
from rules.schedule.examples import recurrence, streaming, three_pass, two_pass

ATTEMPTS = 50
"""Draws after which a seed is given up: most changes of an index leave no graph with a meaning."""


def near_graph(example: Graph, random: Random) -> Graph | None:
    """A graph like *example* with other indices, more readers and other outputs; ``None`` when no draw has a meaning."""
    for _ in range(ATTEMPTS):
        try:
            return _redrawn(example, random)
        except IllFormedError:
            continue
    return None


def _redrawn(example: Graph, random: Random) -> Graph:
    pool = tuple(example.indices.values())
    tensors = example.tensors | {t.name: t for e in example.given for t in (*e.inputs, e.output)}
    changed = {name: replace(tensor, indices=_indices(tensor, pool, random)) for name, tensor in tensors.items()}

    def with_changes(e: Einsum) -> Einsum:
        return replace(e, output=changed[e.output.name], inputs=tuple(changed[t.name] for t in e.inputs))

    einsums = [with_changes(e) for e in example.einsums]
    for number in range(random.choice((0, 0, 1, 2))):
        einsums.append(_reader(f"Y{number}", tuple(changed.values()), random))
    made = [e.output.name for e in einsums]
    outputs = {*example.outputs, *(n for n in made if n.startswith("Y")), *(n for n in made if random.random() < 0.1)}
    left = tuple(n for n in made if n in outputs)
    if not example.given:
        return Graph(tuple(einsums), left)
    return _with_a_past(Graph(tuple(einsums), left), [with_changes(e) for e in example.given], random)


def _with_a_past(graph: Graph, given: list[Einsum], random: Random) -> Graph:
    """*graph* after *given*, now and then computed again in part, under masks here and there, or after something else."""
    einsums, change = list(graph.einsums), random.randrange(8)
    if change == 0:
        einsums.insert(random.randrange(len(einsums) + 1), random.choice(given))
    elif change == 1:
        mask = causal(N_q, N_k)
        chosen = {e.output.name: random.random() < 0.5 for e in (*einsums, *given)}  # a name has one value
        einsums, given = ([_masked(e, mask) if chosen[e.output.name] else e for e in es] for es in (einsums, given))
    elif change == 2:
        made = {e.output.name for e in (*einsums, *given)}
        given = [_reader("G", tuple(t for e in given for t in e.inputs if t.name not in made), random)]
    elif change == 3:
        at = random.randrange(len(einsums))
        e = einsums[at]
        others = [i for i in graph.indices.values() if i not in e.output.indices]
        if e.output.indices and others:
            turned = replace(e.output, indices=(random.choice(others), *e.output.indices[1:]))
            einsums = [
                replace(
                    x,
                    output=turned if x.output == e.output else x.output,
                    inputs=tuple(turned if t == e.output else t for t in x.inputs),
                )
                for x in einsums
            ]
    return Graph(tuple(einsums), graph.outputs, tuple(given))


def _masked(e: Einsum, mask: Mask) -> Einsum:
    """*e* over the kept pairs, where it runs over pairs."""
    return replace(e, domain=mask) if {mask.row, mask.column} <= {i.name for i in e.space} else e


def _indices(tensor: Tensor, pool: tuple[Index, ...], random: Random) -> tuple[Index, ...]:
    """Its indices, or, one time in six, one fewer, one more or two exchanged."""
    indices, change = list(tensor.indices), random.randrange(18)
    missing = [i for i in pool if i not in indices]
    if change == 0 and indices:
        indices.remove(random.choice(indices))
    elif change == 1 and missing:
        indices.insert(random.randrange(len(indices) + 1), random.choice(missing))
    elif change == 2 and len(indices) > 1:
        random.shuffle(indices)
    return tuple(indices)


def _reader(name: str, tensors: tuple[Tensor, ...], random: Random) -> Einsum:
    """One more Einsum that reads one or two tensors there are."""
    operator = random.choice((Map.COPY, Map.EXP, Map.MUL, Map.ADD, Map.SUB, Map.DIV))
    inputs = tuple(random.choice(tensors) for _ in range(operator.arity))
    bound = tuple(dict.fromkeys(i for t in inputs for i in t.indices))
    kept = tuple(i for i in bound if random.random() < 0.7) or bound[:1]
    reduce = random.choice((Reduce.SUM, Reduce.MAX)) if len(kept) < len(bound) else None
    return Einsum(Tensor(name, kept, b), inputs, operator, reduce)


@lru_cache(maxsize=1)
def _grounds() -> tuple[Graph, ...]:
    """Graphs to cut into kernels: attention needing 1, 2 and 3 passes, masked or not, grouped or not, and small sums."""
    sizes = {"q": N_q, "k": N_k}
    small = (
        "l[q] = sum[k] S[q,k]",
        "l[k] = sum[q] S[q,k]",
        "E[q,k] = exp(S[q,k])\nl[k] = sum[q] E[q,k]\nP[q,k] = E[q,k] / l[k]",
    )
    sums = tuple(cascade(text, sizes, outputs=(text.splitlines()[-1][0],), width=b) for text in small)
    attention = tuple(make(mask) for make in (streaming, two_pass, three_pass) for mask in ("full", "causal"))
    leaving = tuple(Graph(g.einsums, ("S", *g.outputs)) for g in (streaming(), streaming("causal")))
    return (
        *sums,
        *attention,
        *leaving,
        streaming(grouped=True),
        streaming("causal", grouped=True),
        _across_heads(),
        _half_masked(),
        recurrence(),
    )


def _across_heads() -> Graph:
    """Attention whose scores are centred on their mean over the heads: no head stands alone."""
    graph = streaming()
    scores, heads = graph.tensors["S"], graph.indices["h"]
    total = Tensor("S_sum", tuple(i for i in scores.indices if i != heads), scores.width)
    raw = Tensor("S_raw", scores.indices, scores.width)
    made = graph.producers["S"]
    centred = (
        replace(made, output=raw),
        Einsum(total, (raw,), Map.COPY, Reduce.SUM),
        Einsum(scores, (raw, total), Map.SUB),
    )
    return graph.replace((made,), centred)


def _half_masked() -> Graph:
    """A masked and an unmasked sum over the same keys."""
    extents = {"q": N_q, "k": N_k}
    masked = cascade("z[q] = sum[k] A[q,k] * x[k]", extents, outputs=("z",), width=b, mask=causal(N_q, N_k))
    plain = cascade("y[q] = sum[k] A[q,k] * x[k]", extents, outputs=("y",), width=b)
    return Graph((*masked.einsums, *plain.einsums), ("z", "y"))


def near_schedule(example: Schedule, random: Random) -> Schedule | None:
    """A schedule like *example*: another graph now and then, loops dropped, added, exchanged, retiled, put on the grid."""
    for _ in range(ATTEMPTS):
        graph = example.graph if random.random() < 0.4 else random.choice(_grounds())
        try:
            kernels = example.kernels if graph is example.graph else _cut(graph, len(example.kernels), random)
            return Schedule(graph, tuple(_renested(graph, k, example.kernels[0].loops, random) for k in kernels))
        except IllFormedError:
            continue
    return None


def _cut(graph: Graph, kernels: int, random: Random) -> tuple[Kernel, ...]:
    """*graph* in one kernel, or cut at random where the example has several."""
    names = [e.output.name for e in graph.einsums]
    if kernels == 1:
        return (Kernel(tuple(names)),)
    cuts = [0, *(n for n in range(1, len(names)) if random.random() < 0.8), len(names)]
    return tuple(Kernel(tuple(names[a:z])) for a, z in pairwise(cuts))


def _renested(graph: Graph, kernel: Kernel, usual: tuple[Loop, ...], random: Random) -> Kernel:
    """*kernel* with a nest drawn near its own, or near *usual* where it has none.

    A kernel without the running maximum that its sums are rescaled by can only run over whole operands.
    """
    if any(graph.producers[name].rescale not in (None, *kernel.einsums) for name in kernel.einsums):
        return kernel
    carried = {i.name for name in kernel.einsums for i in graph.producers[name].space}
    loops = [x for x in (kernel.loops or usual) if {i.name for i in x.indices} <= carried and random.random() < 0.9]
    loops = [x for x in loops if all(graph.indices[i.name] == i for i in x.indices)]
    known = {i.name for x in loops for i in x.indices}
    unlooped = sorted(carried - known)
    if unlooped and random.random() < 0.4:
        more = Loop((graph.indices[random.choice(unlooped)],), sp.Integer(1))
        loops.insert(random.randrange(len(loops) + 1), more)
    if random.random() < 0.3:
        random.shuffle(loops)
    tiles = {"q": B_r, "k": B_c}
    drawn = []
    for x in loops:
        tile = tiles.get(x.indices[0].name, sp.Integer(random.choice((1, 1, 2)))) if random.random() < 0.3 else x.tile
        drawn.append(Loop(x.indices, tile, x.grid != (random.random() < 0.15)))
    drawn.sort(key=lambda x: not x.grid)
    return kernel.with_(loops=tuple(drawn))

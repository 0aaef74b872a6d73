r"""Run what streams over one index in a kernel of its own, and what merges several such streams in another.

    kernels Sp, .., Up | S, .., U | w, .., O   =   kernel Sp..Up: over p;   kernel S..U: over k;   kernel w..O: over neither

Precondition  no kernel of the run has loops yet; what the run reads from other kernels is made before it; nothing that the
              run makes is gathered from in it.
Proof         the merged kernel stands where its first one stood and runs the same Einsums in the same order; nothing in it
              waits for a kernel that it has moved past.
Effect        scores and exponentials stay on chip; each stream's (m, l, U) cross memory once each way.
Reference     Ye et al. 2025, FlashInfer, arXiv:2501.01005, section 3.1 (a kernel for the shared prefix, one for the rest).
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.einsum import Reduce
from derive.graph import Graph
from derive.notation import cascade
from derive.schedule import Kernel, Schedule
from derive.symbols import N_k, N_p, N_q, b, d
from rules.schedule.fuse import Match, fusion, rows_in_memory
from rules.schedule.fuse_parts import made_before


def shape(schedule: Schedule) -> Iterator[Match]:
    """The kernels of each stream, then those of none, where any are more than one and there are several streams."""
    found = streams(schedule.graph)
    if len(found) < 2:
        return
    runs: dict[str, list[Kernel]] = {name: [] for name in (*found, "")}
    for kernel in schedule.kernels:
        owners = {next((name for name, members in found.items() if e in members), "") for e in kernel.einsums}
        if len(owners) == 1:
            runs[owners.pop()].append(kernel)
    for run in runs.values():
        if len(run) > 1:
            yield tuple(run)


def streams(graph: Graph) -> dict[str, set[str]]:
    """For each index that a maximum is taken over, what runs over it, and what only that reads."""
    found: dict[str, set[str]] = {}
    for index in dict.fromkeys(i.name for e in graph.einsums if e.reduce is Reduce.MAX for i in e.reduced):
        members = {e.output.name for e in graph.einsums if index in {i.name for i in e.space}}
        for e in reversed(graph.einsums):
            readers = {reader.output.name for reader in graph.readers.get(e.output.name, ())}
            if readers and readers <= members and e.output.name not in graph.outputs:
                members.add(e.output.name)
        found[index] = members
    return found


def rewrite(schedule: Schedule, match: Match) -> Schedule:
    """One kernel where the first of the run stood."""
    return schedule.replace(match, Kernel(tuple(name for kernel in match for name in kernel.einsums)))


def _graph(*, late: bool = False) -> Graph:
    """Row maxima over two lots of keys and their sum; late, the first lot is centred on something made in between."""
    text = """
        Y[q,p] = exp(A[q,p])
        x[q]   = max[p] Y[q,p]
        Z[q,k] = exp(D[q,k])
        z[q]   = max[k] Z[q,k]
        y[q]   = x[q] + z[q]
    """
    if late:
        text = """
            Y[q,p] = exp(A[q,p])
            f[q]   = exp(v[q])
            F[q,p] = Y[q,p] * f[q]
            x[q]   = max[p] F[q,p]
            z[q]   = max[k] D[q,k]
            y[q]   = f[q] + z[q]
            t[q]   = y[q] + x[q]
        """
    return cascade(text, {"q": N_q, "p": N_p, "k": N_k}, outputs=("t" if late else "y",), width=b)


def _selected_in_between() -> Graph:
    """Row maxima over two lots of keys, and beside them rows that are made and gathered."""
    text = """
        x[q]   = max[p] A[q,p]
        z[q]   = max[k] D[q,k]
        y[q]   = x[q] + z[q]
        E[q,j] = exp(F[q,j])
        G[q,d] = gather(E[q,j], T[q,d])
    """
    return cascade(text, {"q": N_q, "p": N_p, "k": N_k, "j": N_k, "d": d}, outputs=("y", "G"), width=b)


RULE = fusion(
    "fuse-streams",
    "each lot of keys streams in a kernel of its own, and what merges the results runs in another",
    shape,
    _graph,
    ("Y", "Z"),
    made_before(lambda: _graph(late=True)),
    rows_in_memory(_selected_in_between),
    rewrite=rewrite,
    reference="arXiv:2501.01005, section 3.1",
)

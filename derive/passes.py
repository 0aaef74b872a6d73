"""How many times a cascade must run over an index, computed from the graph alone.

A reduction over k is complete only after a whole run over k, and so is a view of what carries k under another name, or an
inverse of what has k for its rows or columns. An
Einsum that carries k and reads either, directly or through what does not carry k, must wait for the next run. What stands
one step behind along k waits for nothing: its recurrence runs in order. One exception: where the reading only shifts
``exp(x - m)`` and every sum below it is rescaled by the running m, the running value is enough.

Source: Nayak et al. 2024, FuseMax, arXiv:2406.10491, section 3 (passes of a cascade; table I: 3, 2 and 1).
"""

from __future__ import annotations

from derive.einsum import Einsum, Map
from derive.graph import Graph


def passes(graph: Graph, index: str) -> int:
    """The least number of runs over *index* that *graph* needs; 0 when nothing carries it.

    Raises:
        KeyError: no Einsum runs over *index*.
    """
    if index not in graph.indices:
        raise KeyError(f"no Einsum runs over {index}; the graph has {list(graph.indices)}")
    return max(pass_of(graph, index).values(), default=0)


def pass_of(graph: Graph, index: str) -> dict[str, int]:
    """For each tensor, the run over *index* in which it is made (0: before the first)."""
    made: dict[str, int] = {}
    complete_only_after: set[str] = set()
    for einsum in graph.einsums:
        carries = any(i.name == index for i in einsum.space)
        earliest = 1 if carries else 0
        for tensor in einsum.inputs:
            ready = made.get(tensor.name, 0)
            waits = tensor.name in complete_only_after
            if carries and waits and not reads_running_value(graph, einsum, tensor.name, index):
                ready += 1
            earliest = max(earliest, ready)
        made[einsum.output.name] = earliest
        late = not carries and any(t.name in complete_only_after for t in einsum.inputs)
        if late or index in einsum.renamed or any(i.name == index for i in (*einsum.reduced, *einsum.inverted)):
            complete_only_after.add(einsum.output.name)
    return made


def reads_running_value(graph: Graph, reader: Einsum, maximum: str, index: str) -> bool:
    """Whether *reader* may use the running value of *maximum* over *index*.

    It must shift by it, the shifted scores must only be exponentiated, and every sum fed by these exponentials must be
    rescaled by it: then exp(m_old - m_new) repairs each partial sum when the maximum rises.
    """
    if reader.map is not Map.SUB or reader.inputs[1].name != maximum or reader.output.name in graph.outputs:
        return False
    frontier, feeds = list(graph.readers.get(reader.output.name, ())), 0
    if any(e.map is not Map.EXP for e in frontier):
        return False
    while frontier:
        einsum = frontier.pop()
        if any(i.name == index for i in einsum.reduced):
            if einsum.rescale != maximum:
                return False
            feeds += 1
            continue
        if einsum.output.name in graph.outputs or not any(i.name == index for i in einsum.output.indices):
            return False
        frontier.extend(graph.readers.get(einsum.output.name, ()))
    return feeds > 0

"""A derivation as one JSON object: its graphs, each once, and step by step which rule made which of them, and why it might.

Values are written field by field, as their classes declare them, those at their default left out; indices, widths and masks
stand once a graph and are named where they are used; an index in parts here, whole in a program before, twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import sympy as sp

from derive.einsum import Einsum, Index, Tensor
from derive.errors import BadValueError
from derive.graph import Graph
from derive.mask import Mask
from derive.rewrite import Derivation, Step
from derive.schedule import Kernel, Schedule
from outputs.notation import text
from outputs.record.formulas import written

if TYPE_CHECKING:
    from outputs.explanation import Explanation

Json = dict[str, Any]


def record(explanation: Explanation) -> Json:
    """The object that ``derive steps --json`` prints; see ``schema/steps.json``."""
    return {
        "variant": explanation.request.variant.name,
        "mask": explanation.request.mask,
        "derivations": [as_json(account.derivation) for account in explanation.accounts],
    }


def as_json(derivation: Derivation) -> Json:
    """The object of one derivation; ``outputs.record.reading`` is the way back."""
    graphs: list[Graph] = []
    start = _number(graphs, derivation.start)
    steps = [_step(graphs, step) for step in derivation.steps]
    schedule = _subject(graphs, derivation.schedule)
    return {
        "name": derivation.name,
        "graphs": [graph_json(graph) for graph in graphs],
        "start": start,
        "steps": steps,
        "schedule": schedule,
    }


def graph_json(graph: Graph) -> Json:
    """A graph alone."""
    einsums = (*graph.given, *graph.einsums)
    tensors = [t for e in einsums for t in (e.output, *e.inputs)]
    earlier, own = _indices(graph.given), _indices(graph.einsums)
    uncut = {name: fields for name, fields in earlier.items() if own.get(name, fields) != fields}
    masks = tuple(dict.fromkeys(e.domain for e in einsums if e.domain is not None))
    found = {
        "indices": earlier | own,
        "widths": _table("tensor", [(t.name, written(t.width)) for t in tensors]),
        "masks": [{"kind": type(m).__name__.lower(), **_fields(m, ())} for m in masks],
        "einsums": [_fields(e, masks) for e in graph.einsums],
        "outputs": list(graph.outputs),
    }
    given = {"given": [_fields(e, masks) for e in graph.given]} if graph.given else {}
    return found | given | ({"given_indices": uncut} if uncut else {})


def _indices(einsums: Sequence[Einsum]) -> Json:
    """The indices of a program by name."""
    tensors = (t for e in einsums for t in (e.output, *e.inputs))
    return _table("index", [(i.name, _fields(i, (), but="name")) for t in tensors for i in t.indices])


def kernels_json(kernels: Sequence[Kernel]) -> list[Any]:
    """The kernels of a schedule, without its graph."""
    return [_fields(kernel, ()) for kernel in kernels]


def _step(graphs: list[Graph], step: Step) -> Json:
    return {
        "rule": step.rule.name,
        "options": step.rule.options,
        "claim": step.rule.claim,
        "reasons": list(step.reasons),
        "condition": text(step.condition),
        "reference": step.rule.reference,
        "after": _subject(graphs, step.after),
    }


def _subject(graphs: list[Graph], subject: Graph | Schedule) -> Json:
    if isinstance(subject, Graph):
        return {"graph": _number(graphs, subject)}
    return {"graph": _number(graphs, subject.graph), "kernels": kernels_json(subject.kernels)}


def _number(graphs: list[Graph], graph: Graph) -> int:
    """Which of *graphs* it is; it is added when it is none."""
    if graph not in graphs:
        graphs.append(graph)
    return graphs.index(graph)


def _table(what: str, named: list[tuple[str, Any]]) -> Json:
    """Each name with the one value it has."""
    found: Json = {}
    for name, value in named:
        if found.setdefault(name, value) != value:
            raise BadValueError(f"the {what} {name} is {found[name]} and {value} in one graph; give one another name")
    return found


def _fields(value: Any, masks: tuple[Mask, ...], *, but: str = "") -> Json:
    """The fields of a dataclass that are not at their default."""
    shown = (f for f in dataclasses.fields(value) if f.name != but and getattr(value, f.name) != f.default)
    return {f.name: _value(getattr(value, f.name), masks) for f in shown}


def _value(value: Any, masks: tuple[Mask, ...]) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Index):
        return value.name
    if isinstance(value, Tensor):
        return {"tensor": value.name, "indices": [i.name for i in value.indices]}
    if isinstance(value, Mask):
        return masks.index(value)
    if isinstance(value, sp.Basic):
        return written(value)
    if isinstance(value, tuple):
        return [_value(part, masks) for part in value]
    return _fields(value, masks)

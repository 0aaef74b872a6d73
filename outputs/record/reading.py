"""A derivation from its record: graphs and kernels are built anew, and each step is taken again by the rule it names.

A record is believed in nothing: a graph that differs from what the rule makes, a clause that is not the rule's, or a key that
does not belong is refused. No text of it is run; formulas are read by ``outputs.reader``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import derive.masks  # noqa: F401  (it brings every kind of mask)
from derive.einsum import Einsum, Index
from derive.errors import BadValueError, IllFormedError, PreconditionError, one_line, repeated
from derive.graph import Graph
from derive.mask import Mask
from derive.rewrite import Derivation, Rule, Step, WherePossible, apply_once
from derive.schedule import Kernel, Schedule, lift
from derive.symbols import n_L2
from outputs.record.fields import Names, member, of_kind, read_fields
from outputs.record.formulas import reread
from outputs.record.writing import as_json, graph_json, kernels_json
from rules.catalogue import ALGEBRA, SCHEDULE
from rules.derivations import names, plan
from rules.schedule.keep_resident import keep_resident

MOST_CHARACTERS = 32 * 2**20
_MOST_STEPS = 256
_PARTS = ("indices", "widths", "masks", "einsums", "outputs", "given", "given_indices")


def load(text: str) -> tuple[Derivation, ...]:
    """The derivations that ``derive steps --json`` printed.

    Raises:
        BadValueError: it is no such file, or one of them is not what its rules make; the message says which step, and where.
    """
    if len(text) > MOST_CHARACTERS:
        raise BadValueError(f"a record of {len(text)} characters is too long; at most {MOST_CHARACTERS} are read")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValueError(
            f"this is no JSON: {repeated(str(error))}; write it with `derive steps VARIANT --json`"
        ) from None
    found = member(record, "derivations", list, "the record")
    return tuple(from_json(part, f"derivations[{n}]") for n, part in enumerate(found))


def from_json(record: Any, where: str = "the record") -> Derivation:
    """The derivation that ``as_json`` wrote; raises as ``load`` does."""
    name = member(record, "name", str, where)
    graphs = [_graph(part, f"{where}.graphs[{n}]") for n, part in enumerate(member(record, "graphs", list, where))]
    start = _pick(graphs, member(record, "start", int, where), f"{where}.start")
    steps: list[Step] = []
    subject: Graph | Schedule = start
    written = member(record, "steps", list, where)
    if len(written) > _MOST_STEPS:
        raise BadValueError(f"{where} has {len(written)} steps; at most {_MOST_STEPS} are read")
    for n, part in enumerate(written):
        here = f"{where}.steps[{n}]"
        after = _subject(member(part, "after", dict, here), graphs, f"{here}.after")
        if isinstance(after, Schedule) and isinstance(subject, Graph):
            subject = lift(subject)
        steps.append(_taken(part, subject, after, here))
        subject = after
    schedule = subject if isinstance(subject, Schedule) else lift(subject)
    final = _subject(member(record, "schedule", dict, where), graphs, f"{where}.schedule")
    if final != schedule:
        raise BadValueError(f"{where}.schedule is not what the last step leaves; {_differs(final, schedule)}")
    found = Derivation(name, start, tuple(steps), schedule)
    if (other := next(_differences(record, as_json(found), where), None)) is not None:
        raise BadValueError(other)
    return found


@cache
def _rules() -> dict[tuple[str, str, str], Rule[Any]]:
    """Every rule of the catalogue and of the plans, by what it rewrites, its name and its options."""
    plans = [plan(name) for name in names()]
    private = (keep_resident(sawtooth=sawtooth, caches=n_L2) for sawtooth in (False, True))
    of_graphs = (*ALGEBRA, *(taken for p in plans for taken in p.algebra))
    of_schedules = (*SCHEDULE, *private, *(taken for p in plans for taken in p.schedule))
    return {
        (kind, rule.name, rule.options): rule
        for kind, listed in (("graph", of_graphs), ("schedule", of_schedules))
        for rule in (r.rule if isinstance(r, WherePossible) else r for r in listed)
    }


def _taken(record: Any, before: Graph | Schedule, after: Graph | Schedule, where: str) -> Step:
    """The step that *record* describes, if its rule makes *after* of *before*."""
    name, options = member(record, "rule", str, where), member(record, "options", str, where)
    kind = "graph" if isinstance(after, Graph) else "schedule"
    rule = _rules().get((kind, name, options))
    written = f"{name}({options})" if options else name
    if rule is None:
        raise BadValueError(f"{where}: no rule of a {kind} is called {repeated(written)}")
    if isinstance(before, Schedule) and isinstance(after, Graph):
        raise BadValueError(f"{where}: {written} rewrites a graph, and the steps before it have cut it into kernels")
    try:
        step = apply_once(rule, before)
    except PreconditionError as error:
        raise BadValueError(f"{where}: {one_line(str(error))}") from error
    if step.after != after:
        raise BadValueError(
            f"{where}: {written} makes something else of what stood before; {_differs(after, step.after)}"
        )
    return step


def _graph(record: Any, where: str) -> Graph:
    for key in of_kind(record, dict, where):
        if key not in _PARTS:
            raise BadValueError(f"{where} has an unknown key {repeated(str(key))}; known: {', '.join(_PARTS)}")
    indices = _indices(member(record, "indices", dict, where), f"{where}.indices")
    uncut = _indices(of_kind(record.get("given_indices", {}), dict, where), f"{where}.given_indices")
    widths = {
        name: reread(part, f"{where}.widths.{repeated(name)}")
        for name, part in member(record, "widths", dict, where).items()
    }
    listed = member(record, "masks", list, where)
    names = Names(indices, widths, tuple(_mask(part, f"{where}.masks[{n}]") for n, part in enumerate(listed)))
    outputs = [of_kind(name, str, f"{where}.outputs") for name in member(record, "outputs", list, where)]
    before = replace(names, indices=indices | uncut)
    einsums, given = (
        tuple(
            read_fields(Einsum, part, at, f"{where}.{key}[{n}]") for n, part in enumerate(of_kind(parts, list, where))
        )
        for key, parts, at in (
            ("einsums", record.get("einsums"), names),
            ("given", record.get("given", []), before),
        )
    )
    try:
        return Graph(einsums, tuple(outputs), given)
    except IllFormedError as error:
        raise BadValueError(f"{where}: {one_line(str(error))}") from error


def _indices(record: Any, where: str) -> dict[str, Index]:
    found = {}
    for name, part in record.items():
        here = f"{where}.{repeated(name)}"
        found[name] = read_fields(Index, {"name": name, **of_kind(part, dict, here)}, Names(), here)
    return found


def _mask(record: Any, where: str) -> Mask:
    kind = member(record, "kind", str, where)
    kinds: list[type[Mask]] = [Mask, *Mask.__subclasses__()]
    known = {cls.__name__.lower(): cls for cls in kinds}
    if kind not in known:
        raise BadValueError(f"{where} is of the kind {repeated(kind)}; known: {', '.join(known)}")
    found: Mask = read_fields(known[kind], {k: v for k, v in record.items() if k != "kind"}, Names(), where)
    return found


def _subject(record: Any, graphs: list[Graph], where: str) -> Graph | Schedule:
    graph = _pick(graphs, member(record, "graph", int, where), f"{where}.graph")
    if "kernels" not in record:
        return graph
    names = Names(graph.indices)
    kernels = [
        read_fields(Kernel, part, names, f"{where}.kernels[{n}]")
        for n, part in enumerate(member(record, "kernels", list, where))
    ]
    try:
        return Schedule(graph, tuple(kernels))
    except IllFormedError as error:
        raise BadValueError(f"{where}: {one_line(str(error))}") from error


def _pick(graphs: list[Graph], number: int, where: str) -> Graph:
    if not 0 <= number < len(graphs):
        raise BadValueError(f"{where} is graph {repeated(str(number))}, and {len(graphs)} are listed, counted from 0")
    return graphs[number]


def _differs(given: Graph | Schedule, made: Graph | Schedule) -> str:
    """Where two subjects first differ, in words."""
    if isinstance(given, Schedule) and isinstance(made, Schedule) and given.graph == made.graph:
        pair: tuple[Any, Any] = kernels_json(given.kernels), kernels_json(made.kernels)
        return next(_differences(*pair, "kernels"), "they differ")
    one, other = (x.graph if isinstance(x, Schedule) else x for x in (given, made))
    return next(_differences(graph_json(one), graph_json(other), "its graph"), "they differ")


def _differences(given: Any, made: Any, where: str) -> Iterator[str]:
    """A sentence for each place where a record differs from the one that the rules make."""
    if type(given) is not type(made):
        yield f"{where} is {repeated(json.dumps(given))}, and the rules make {repeated(json.dumps(made))}"
    elif isinstance(given, dict):
        for key in dict.fromkeys((*made, *given)):
            if key not in made:
                yield f"{where} has a key {repeated(key)} that does not belong there"
            elif key not in given:
                yield f"{where} has no {key}, and the rules make {repeated(json.dumps(made[key]))}"
            else:
                yield from _differences(given[key], made[key], f"{where}.{key}")
    elif isinstance(given, list):
        for n, (one, other) in enumerate(zip(given, made, strict=False)):
            yield from _differences(one, other, f"{where}[{n}]")
        if len(given) != len(made):
            yield f"{where} has {len(given)} entries, and the rules make {len(made)}"
    elif given != made:
        yield f"{where} is {repeated(json.dumps(given))}, and the rules make {repeated(json.dumps(made))}"

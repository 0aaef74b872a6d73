"""Graph -> values (NumPy): the reference meaning of a graph, in float64.

One table gives each ``Map`` its meaning, one each ``Reduce``. Points outside an Einsum's domain are not computed: an
elementwise result is 0 there, a sum and a maximum skip them. A sum of nothing is 0, a maximum of nothing is -inf, -inf
less anything is -inf and 0/0 is 0, so a query that sees no key gets a row of zeros. A sum that is rescaled by a running
maximum has the value of the plain sum. A recurrence runs step by step, its states zero before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, prod

import numpy as np
import sympy as sp

from derive.einsum import Einsum, Map, Tensor
from derive.errors import DomainError, UnboundError
from derive.graph import Graph, Recurrence
from derive.mask import Mask
from derive.operators import Array, Block, Kept, compute, generated
from derive.places import Places
from derive.selection import numbers, random_positions, selected
from derive.steps import Steps
from derive.symbols import COPY, ROW

Values = Mapping[str, int | Fraction]


def evaluate(
    graph: Graph, inputs: Mapping[str, Array], scalars: Mapping[str, float] | None = None, values: Values | None = None
) -> dict[str, Array]:
    """The value of every tensor that the graph defines.

    Args:
        graph: what to compute.
        inputs: an array for each of ``graph.sources``, axes in the order of its indices, an index and its parts on one axis
            or on two; what an earlier program has saved is computed as that program did, unless it is given too.
        scalars: the kernels' arguments, e.g. ``{"c": 0.125}``.
        values: the value of symbols that the inputs' shapes do not give away.

    Returns:
        An array for each, an index and its parts on one axis where they stand side by side.

    Raises:
        UnboundError: an input, a scalar or a symbol has no value.
        DomainError: two inputs disagree on the extent of an index.
    """
    known = arguments(graph, inputs, scalars, values)
    extents = _shapes(graph, known)
    symbols = dict(values or {})
    symbols |= {i.extent.name: extents[n] for n, i in graph.indices.items() if i.extent.is_Symbol and n in extents}

    def kept_by(e: Einsum) -> Block | None:
        return None if e.domain is None else kept_block(e.domain, symbols)

    def shape(e: Einsum) -> list[int]:
        return [extents[i.name] if i.name in extents else whole(i.extent, symbols) for i in e.output.indices]

    runs = {e: run for run in graph.recurrences for e in run.einsums}
    for e in graph.einsums:
        run = runs.get(e)
        if run is not None and e == run.einsums[0]:
            read = {t: Block(axes_of(t), known[t.name]) for x in run.einsums for t in x.inputs if t.name in known}
            shapes = {x.output.name: shape(x) for x in run.einsums}
            kept = {x.output.name: kept_by(x) for x in run.einsums}
            known |= stepped(run, axes_of, read, shapes, kept, {})
        elif run is None:
            operands = [Block(axes_of(t), known[t.name]) for t in e.inputs]
            if e.map.is_generated:
                operands = [Block(axes_of(e.output), generated(e, shape(e), known))]
            elif e.map.is_selection:
                if (paging := e.paging) is not None:
                    lengths = dict(zip(axes_of(e.output), shape(e), strict=True))
                    operands.append(Block(tuple(i.name for i in paging.rows), numbers(paging, lengths)))
                operands = [selected(e, axes_of(e.output), operands, shape(e), kept_by(e))]
            result = compute(e, axes_of(e.output), operands, None if e.map is Map.TOP else kept_by(e))
            known[e.output.name] = np.broadcast_to(result, shape(e)).copy()
    return {e.output.name: on_axes(e.output, known[e.output.name]) for e in graph.einsums}


def stepped(
    run: Recurrence,
    axes: Callable[[Tensor], tuple[str, ...]],
    operands: Mapping[Tensor, Block],
    shapes: Mapping[str, Sequence[int]],
    kept: Mapping[str, Block | None],
    states: dict[str, Array],
) -> dict[str, Array]:
    """The values of what a recurrence defines, or of a part of it, step by step.

    Read are *axes* of a tensor, the *operands* that it does not define, and by name the *shapes* of its results and the points
    that are *kept* of each (``None`` for all). *states* has what stands one step behind the first step, zero where it is not
    there; it is replaced by what stands behind the step after the last.
    """
    found = {e.output.name: np.zeros(shapes[e.output.name]) for e in run.einsums}
    blocks = {**operands, **{e.output: Block(axes(e.output), found[e.output.name]) for e in run.einsums}}

    def at(block: Block, step: int) -> Block:
        part = slice(step, step + 1)
        return Block(block.axes, block.values[tuple(part if a == run.index else slice(None) for a in block.axes)])

    first = run.einsums[0].output
    for step in range(shapes[first.name][axes(first).index(run.index)]):
        for e in run.einsums:
            target = at(blocks[e.output], step).values
            if e.previous is not None:
                target[...] = states.get(e.output.name, 0.0)
            else:
                read = [at(blocks[t], step) for t in e.inputs]
                target[...] = compute(e, axes(e.output), read, kept[e.output.name])
        for e in run.einsums:
            if e.previous is not None:
                states[e.output.name] = at(blocks[e.inputs[0]], step).values.copy()
    return found


def arguments(
    graph: Graph, inputs: Mapping[str, Array], scalars: Mapping[str, float] | None, values: Values | None = None
) -> dict[str, Array]:
    """Every array and scalar that the graph reads and does not define, by name; what was saved is computed if need be.

    Raises:
        UnboundError: one is missing.
    """
    read = {t.name: t for e in graph.einsums for t in e.inputs if t.name not in graph.producers}
    given: dict[str, Array] = {name: np.asarray(a, np.float64) for name, a in {**inputs, **(scalars or {})}.items()}
    if any(e.output.name in read and e.output.name not in given for e in graph.given):
        uncut = {name: on_axes(read[name], array) if name in read else array for name, array in inputs.items()}
        given = evaluate(Graph(graph.given, ()), uncut, scalars, values) | given
    for name, tensor in read.items():
        if name not in given:
            raise UnboundError(f"{tensor} has no value; the values given are {sorted(given)}")
    return {name: _in_parts(tensor, given[name], values or {}) for name, tensor in read.items()}


def _in_parts(tensor: Tensor, array: Array, values: Values) -> Array:
    """*array* with an axis for each index, where it has one for an index and its parts together."""
    if array.ndim == len(tensor.indices) or array.ndim != len(tensor.axes):
        return array
    return array.reshape([whole(i.extent, values) for i in tensor.indices])


def on_axes(tensor: Tensor, array: Array) -> Array:
    """*array* with an index and its parts on one axis, as the tensor lies in memory."""
    if array.ndim != len(tensor.indices) or len(tensor.axes) == len(tensor.indices):
        return array
    lengths = iter(array.shape)
    return array.reshape([prod(next(lengths) for _ in axis) for axis in tensor.axes])


def random_inputs(graph: Graph, values: Values, rng: np.random.Generator) -> dict[str, Array]:
    """A standard normal array for each tensor that neither the graph nor what ran before it makes.

    Positions are distinct for each query, those of keys that it sees first; in a table without queries, one may stand for
    several.
    """
    extents = sizes(graph, values)
    drawn = {t.name: rng.standard_normal([whole(i.extent, values) for i in t.indices]) for t in graph.sources}
    for e in graph.einsums:
        if e.map is Map.GATHER and (positions := e.inputs[1].name) in drawn and e.selected is not None:
            distinct = "q" in axes_of(e.inputs[1])
            length, seen = extents[e.selected.name], None
            if e.domain is not None:  # positions of keys that the query sees come first, as a masked top leaves them
                own = e.domain
                alike = replace(own, columns=e.selected.extent, column=e.selected.name)
                among = own.source if isinstance(own, Places) else alike
                seen = kept_block(among, values).over([*axes_of(e.inputs[1])[:-1], e.selected.name])
            shape = drawn[positions].shape
            drawn[positions] = random_positions(length, shape, rng, distinct=distinct, seen=seen)
    return drawn


def axes_of(tensor: Tensor) -> tuple[str, ...]:
    """The names of its indices."""
    return tuple(i.name for i in tensor.indices)


def _shapes(graph: Graph, arrays: Mapping[str, Array]) -> dict[str, int]:
    """The extent of each index that an input carries, from its array."""
    found: dict[str, int] = {}
    for tensor in graph.inputs:
        shape = arrays[tensor.name].shape
        if len(shape) != len(tensor.indices):
            raise DomainError(f"{tensor} has {len(tensor.indices)} indices, its array has shape {shape}")
        for index, extent in zip(tensor.indices, shape, strict=True):
            if found.setdefault(index.name, extent) != extent:
                raise DomainError(f"{tensor} has {extent} for {index.name}, another input has {found[index.name]}")
    return found


def kept_pairs(mask: Mask, values: Values) -> Kept:
    """Which (query, key) pairs a mask keeps, shape (rows, columns)."""
    keys = np.arange(whole(mask.columns, values))
    kept = np.zeros((whole(mask.rows, values), len(keys)), bool)
    for row, seen in enumerate(intervals(mask, values)):
        for first, last in seen:
            kept[row] |= (first <= keys) & (keys <= last)
    return kept


def kept_block(mask: Mask, values: Values) -> Block:
    """The same along the mask's axes: the keys cut into its parts where it has some."""
    pairs = kept_pairs(mask, values)
    if mask.part:
        pairs = pairs.reshape(len(pairs), whole(mask.parts, values), -1)
    return Block(mask.axes, pairs)


def number(expression: sp.Expr, values: Values) -> int | Fraction:
    """An extent, a tile or a bound with numbers in it, exactly.

    Raises:
        UnboundError: a symbol has no value.
        DomainError: it has another operator than + * ** Min Max floor ceiling.
    """
    if expression.is_Symbol:
        if expression.name not in values:
            raise UnboundError(f"{expression} has no value; the values given are {sorted(values)}")
        return values[expression.name]
    if expression.is_Rational:
        return Fraction(expression.p, expression.q) if expression.q != 1 else int(expression.p)
    if isinstance(expression, Steps):
        x = number(expression.args[0], values)
        passed = [int(value) for start, value in zip(*expression.args[1:], strict=True) if start <= x]
        return passed[-1] if passed else int(expression.args[2][0])
    found = [number(a, values) for a in expression.args]
    if expression.is_Add:
        return sum(found)
    if expression.is_Mul:
        return prod(found)
    if expression.is_Pow:
        return Fraction(found[0]) ** int(found[1])
    for function, meaning in ((sp.Min, min), (sp.Max, max)):
        if isinstance(expression, function):
            return meaning(found)
    if isinstance(expression, sp.ceiling):
        return ceil(found[0])
    if isinstance(expression, sp.floor):
        return floor(found[0])
    raise DomainError(f"{expression}: {expression.func} is no operator of an extent")


def whole(expression: sp.Expr, values: Values) -> int:
    """The same for what must be a whole number.

    Raises:
        UnboundError: a symbol has no value.
        DomainError: it is no whole number.
    """
    found = number(expression, values)
    if found != int(found):
        raise DomainError(f"{expression} is {found}, no whole number, at {dict(values)}")
    return int(found)


def sizes(graph: Graph, values: Values) -> dict[str, int]:
    """The extent of each index, by name."""
    return {name: whole(index.extent, values) for name, index in graph.indices.items()}


def intervals(mask: Mask, values: Values) -> list[list[tuple[int, int]]]:
    """The first and the last key of each interval that each query sees, as the mask defines them; last < first for none."""
    rows, end = whole(mask.rows, values), whole(mask.columns, values) - 1
    here = dict(values)
    found: list[list[tuple[int, int]]] = []
    for row in range(rows):
        here[ROW.name] = row
        seen = []
        for interval in mask.intervals:
            if interval.since is not None and row < whole(interval.since, here):
                continue
            if interval.until is not None and row >= whole(interval.until, here):
                continue
            for copy in range(whole(interval.copies, here)):
                here[COPY.name] = copy
                first = 0 if interval.first is None else max(0, whole(interval.first, here))
                last = end if interval.last is None else min(end, whole(interval.last, here))
                seen.append((first, last))
        found.append(seen)
    return found

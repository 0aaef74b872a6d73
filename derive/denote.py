"""Graph -> expressions (SymPy): what a graph computes, with nothing in it but its inputs.

``denote`` writes every element out at small extents, so that two graphs can be proved equal entry by entry; ``equation``
writes an output in closed form, with sums and maxima over an index left standing, as it is printed. Both read the table
``MAPS``; ``TERMS`` and ``RANGES`` combine points for the one and the other.

Points outside an Einsum's domain are 0 in an elementwise result and left out of sums and maxima; a sum of nothing is 0, a
maximum of nothing -oo and 0/0 is 0, as in ``derive.evaluate``. A rescaled sum is the plain one in closed form; written
out, it streams its terms, each relative to the maximum so far, so that proving it equal proves the rescaling.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import product
from types import MappingProxyType

import sympy as sp

from derive.denote_inverse import inverse_closed, inverse_written_out
from derive.denote_selection import selection_closed, selection_written_out
from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import UnboundError
from derive.graph import Graph
from derive.interval import Interval
from derive.mask import Mask
from derive.symbols import COPY, ROW, dummy

Position = tuple[int, ...]
Places = Mapping[str, sp.Expr]
"""Where each index stands, by name."""


def _quotient(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    return sp.Integer(0) if a == 0 and b == 0 else a / b


def _difference(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    return a if a == -sp.oo else a - b


MAPS: dict[Map, Callable[..., sp.Expr]] = {
    Map.COPY: lambda a: a,
    Map.VIEW: lambda a: a,
    Map.MUL: lambda a, b: a * b,
    Map.ADD: lambda a, b: a + b,
    Map.SUB: _difference,
    Map.DIV: _quotient,
    Map.NEG: lambda a: -a,
    Map.EXP: sp.exp,
    Map.LOG: sp.log,
    Map.TANH: sp.tanh,
    Map.SIGMOID: lambda a: 1 / (1 + sp.exp(-a)),
    Map.RELU: lambda a: sp.Max(a, 0),
    Map.MAXIMUM: lambda a, b: sp.Max(a, b),
    Map.SOFTMAX: lambda a, total: sp.exp(a) / total,
    Map.SOFTMAX_GRADIENT: lambda _p, _dp, pulled: pulled,
    **dict.fromkeys((Map.TOP, Map.GATHER, Map.POSITION, Map.KEEP, Map.INVERSE), lambda made: made),
}
"""What each operator makes of its operands; softmax takes the sum of its row's exponentials as a second one, its gradient the
row of dP times a column of the Jacobian as a third one; the operand of one that generates is what it makes."""

TERMS: dict[Reduce, Callable[[list[sp.Expr]], sp.Expr]] = {
    Reduce.SUM: lambda terms: sp.Add(*terms),
    Reduce.MAX: lambda terms: sp.Max(*terms),
}
"""How points that are written out are combined."""

Maximum = sp.Function("max", real=True)
"""``max(term, (k, first, last))``: the maximum in closed form."""

RANGES: dict[Reduce, Callable[[sp.Expr, list[sp.Tuple]], sp.Expr]] = {
    Reduce.SUM: lambda term, ranges: sp.Sum(term, *ranges),
    Reduce.MAX: lambda term, ranges: Maximum(term, *ranges),
}
"""How points are combined over ranges (index, first, last) that are left standing."""


def entry(tensor: Tensor, places: Places, extents: Mapping[str, int] | None = None) -> sp.Expr:
    """One generic real entry of an input, or a scalar argument.

    Args:
        tensor: which input.
        places: where each index stands; key k of part s stands at s times the keys of a part, plus k.
        extents: numbers for the extents, if they are to be numbers.
    """
    base = sp.IndexedBase(tensor.name, real=True)
    at = tensor.along_axes(places, extents)
    return base[at] if at else base.label


def denote(graph: Graph, name: str, extents: Mapping[str, int]) -> dict[Position, sp.Expr]:
    """Every element of a tensor in terms of the inputs' entries.

    Args:
        graph: what computes it.
        name: which tensor; its elements are named by where they stand along its axes, cut into parts or not.
        extents: the extent of each index by name; small, since every point is written out.

    Raises:
        UnboundError: an index has no extent.
    """
    for index in graph.indices.values():
        if index.name not in extents:
            raise UnboundError(f"index {index.name} has no extent; the extents given are {dict(extents)}")
    numbers = {i.extent: extents[i.name] for i in graph.indices.values() if i.extent.is_Symbol}
    known: dict[str, dict[Position, sp.Expr]] = {}
    runs = {e: run for run in graph.recurrences for e in run.einsums}
    for e in (*graph.given, *graph.einsums):
        if e not in runs:
            known[e.output.name] = _written_out(graph, e, extents, numbers, known)
        elif e.output.name not in known:
            for step in range(extents[runs[e].index]):
                for each in runs[e].einsums:
                    here = _written_out(graph, each, extents, numbers, known, {runs[e].index: step})
                    known.setdefault(each.output.name, {}).update(here)
        if e.output.name == name and e in graph.einsums:
            break
    made = graph.tensors[name]
    names = [i.name for i in made.indices]
    places = ((dict(zip(names, at, strict=True)), element) for at, element in known[name].items())
    return {tuple(map(int, made.along_axes(at, extents))): element for at, element in places}


def _written_out(
    graph: Graph,
    einsum: Einsum,
    extents: Mapping[str, int],
    numbers: Mapping[sp.Symbol, int],
    known: Mapping[str, Mapping[Position, sp.Expr]],
    only: Mapping[str, int] = MappingProxyType({}),
) -> dict[Position, sp.Expr]:
    """Every element of what one Einsum defines, or those that stand at *only*."""

    def read(tensor: Tensor, at: Mapping[str, int]) -> sp.Expr:
        at = {**at, **{old: at[new] for old, new in einsum.renamed.items()}}
        if einsum.previous is not None:
            at = {**at, einsum.previous: at[einsum.previous] - 1}
            if at[einsum.previous] < 0:
                return sp.Integer(0)
        if tensor.name in known:
            return known[tensor.name][tuple(at[i.name] for i in tensor.indices)]
        return entry(tensor, {name: sp.Integer(n) for name, n in at.items()}, extents)

    def kept(at: Mapping[str, int]) -> bool:
        mask = einsum.domain  # of a top it is over what is looked through, which its result has no place in
        return mask is None or mask.column not in at or _sees(mask, at, numbers)

    def point(at: Mapping[str, int]) -> sp.Expr:
        if einsum.map.is_generated:
            return MAPS[einsum.map](_generated(einsum, {name: sp.Integer(n) for name, n in at.items()}, extents))
        if einsum.map.is_selection:
            return MAPS[einsum.map](selection_written_out(einsum, at, read, extents, kept))
        if einsum.map is Map.INVERSE:
            return MAPS[einsum.map](inverse_written_out(einsum, at, read))
        operands = [read(t, at) for t in einsum.inputs]
        if einsum.map is Map.SOFTMAX:
            last = einsum.output.indices[-1].name
            row = [{**at, last: n} for n in range(extents[last])]
            operands.append(sp.Add(*(sp.exp(read(einsum.inputs[0], other)) for other in row if kept(other))))
        if einsum.map is Map.SOFTMAX_GRADIENT:
            last = einsum.output.indices[-1].name
            row = [{**at, last: n} for n in range(extents[last])]
            p, dp = einsum.inputs
            here = read(p, at)
            terms = (read(dp, to) * read(p, to) * (int(to == dict(at)) - here) for to in row if kept(to))
            operands.append(sp.Add(*terms))
        return MAPS[einsum.map](*operands)

    found: dict[Position, sp.Expr] = {}
    outer, inner = einsum.output.indices, einsum.reduced
    for position in _positions(outer, extents):
        at = dict(zip((i.name for i in outer), position, strict=True))
        if any(at[index] != step for index, step in only.items()):
            continue
        if einsum.reduce is None:
            found[position] = point(at) if kept(at) else sp.Integer(0)
            continue
        names = [i.name for i in inner]
        every = ({**at, **dict(zip(names, rest, strict=True))} for rest in _positions(inner, extents))
        points = [full for full in every if kept(full)]
        terms = [point(full) for full in points]
        if einsum.rescale is None:
            found[position] = TERMS[einsum.reduce](terms)
            continue
        maximum = graph.producers[einsum.rescale]
        scores = [read(maximum.inputs[0], full) for full in points]
        found[position] = _streamed(terms, scores, read(maximum.output, at))
    return found


def _generated(einsum: Einsum, places: Places, extents: Mapping[str, int] | None = None) -> sp.Expr:
    """What is made of coordinates: the coordinate itself, or an entry of a mask that is like any other number."""
    made = einsum.output
    return made.along_axes(places, extents)[0] if einsum.map is Map.POSITION else entry(made, places, extents)


def _streamed(terms: list[sp.Expr], scores: list[sp.Expr], maximum: sp.Expr) -> sp.Expr:
    """A sum that is repaired whenever the maximum of the scores so far rises; *terms* are relative to the final one."""
    total, highest = sp.Integer(0), -sp.oo
    for term, score in zip(terms, scores, strict=True):
        higher = sp.Max(highest, score)
        total = total * sp.exp(highest - higher) + term.xreplace({maximum: higher})
        highest = higher
    return total


def _positions(indices: tuple[Index, ...], extents: Mapping[str, int]) -> list[Position]:
    return list(product(*(range(extents[i.name]) for i in indices)))


def _sees(mask: Mask, at: Mapping[str, int], numbers: Mapping[sp.Symbol, int]) -> bool:
    """Whether the mask keeps a point."""
    row, column = at[mask.row], at[mask.column]
    here = {**numbers, ROW: row}
    if mask.part:
        column += at[mask.part] * int(mask.part_length.subs(numbers))

    def end(bound: sp.Expr | None, otherwise: int, copy: int = 0) -> int:
        return otherwise if bound is None else int(bound.subs({**here, COPY: copy}))

    return any(
        end(i.first, column, copy) <= column <= end(i.last, column, copy)
        for i in mask.intervals
        if end(i.since, row) <= row < end(i.until, row + 1)
        for copy in range(end(i.copies, 1))
    )


def equal(before: sp.Expr, after: sp.Expr) -> bool:
    """Whether two elements are equal for all real entries, proved by rational arithmetic on exp(x + y) = exp(x) exp(y)."""
    difference = sp.expand(before - after, power_exp=True)
    return bool(sp.cancel(sp.together(difference)) == 0)


def equation(graph: Graph, name: str, *, keep: Collection[str] = ()) -> sp.Eq:
    """A tensor in closed form, ``O[q, e] = sum_k ...``, its inputs' definitions put in.

    An inner sum over an index that an outer one already runs over gets a primed variable, and so does an index that is
    called like the symbol of some extent.

    Args:
        graph: what computes it.
        name: which tensor.
        keep: tensors that are left as they are, e.g. ``("S",)``.
    """
    einsum = graph.producers[name]
    taken = {s.name for i in graph.indices.values() for s in i.extent.free_symbols}
    places = {i.name: _fresh(i, taken) for i in einsum.output.indices}
    right = _closed(graph, einsum, places, frozenset(keep), taken)
    mask = einsum.domain
    if mask is not None and einsum.reduce is None and mask.column in places:
        column = places[mask.column]
        seen = (_ends(mask, interval, places) for interval in mask.intervals)
        right = sp.Piecewise(
            (right, sp.Or(*(sp.And(first <= column, column <= last) for first, last in seen))), (0, True)
        )
    return sp.Eq(entry(einsum.output, places), right, evaluate=False)


def _closed(graph: Graph, einsum: Einsum, places: Places, keep: frozenset[str], taken: set[str]) -> sp.Expr:
    """What one Einsum defines, at *places*; variables in *taken* mean something else already."""
    taken = set(taken)
    here = {**places, **{i.name: _fresh(i, taken) for i in einsum.reduced}}

    def read(tensor: Tensor, at: Places) -> sp.Expr:
        at = {**at, **{old: at[new] for old, new in einsum.renamed.items()}}
        if einsum.previous is not None:  # a recurrence is written as one: what it was a step before
            behind = {**at, einsum.previous: at[einsum.previous] - 1}
            return sp.Piecewise((entry(tensor, behind), at[einsum.previous] > 0), (0, True))
        if tensor.name not in graph.producers or tensor.name in keep:
            return entry(tensor, at)
        return _closed(graph, graph.producers[tensor.name], at, keep, taken)

    if einsum.map.is_generated:
        return MAPS[einsum.map](_generated(einsum, here))
    if einsum.map.is_selection:
        mask = einsum.domain if einsum.map is Map.TOP else None
        seen = [] if mask is None else [_ends(mask, interval, here) for interval in mask.intervals]
        return MAPS[einsum.map](selection_closed(einsum, here, read, seen))
    if einsum.map is Map.INVERSE:
        other = {**here, **{i.name: _fresh(i, taken) for i in einsum.inverted}}
        return MAPS[einsum.map](inverse_closed(einsum, here, other, read))
    operands = [read(t, here) for t in einsum.inputs]
    if einsum.map is Map.SOFTMAX:
        last = einsum.output.indices[-1]
        other = {**here, last.name: _fresh(last, taken)}
        operands.append(_over(Reduce.SUM, sp.exp(read(einsum.inputs[0], other)), einsum, (last,), other))
    if einsum.map is Map.SOFTMAX_GRADIENT:
        last = einsum.output.indices[-1]
        other = {**here, last.name: _fresh(last, taken)}
        p, dp = einsum.inputs
        same = sp.KroneckerDelta(here[last.name], other[last.name])
        term = read(dp, other) * read(p, other) * (same - operands[0])
        operands.append(_over(Reduce.SUM, term, einsum, (last,), other))
    point = MAPS[einsum.map](*operands)
    return point if einsum.reduce is None else _over(einsum.reduce, point, einsum, einsum.reduced, here)


def _fresh(index: Index, taken: set[str]) -> sp.Symbol:
    """A variable for an index, primed until its name is free; it is taken from then on."""
    name = index.name
    while name in taken:
        name += "'"
    taken.add(name)
    return dummy(name)


def _over(reduce: Reduce, point: sp.Expr, einsum: Einsum, indices: Collection[Index], places: Places) -> sp.Expr:
    """*point* combined over *indices*: over all of their extents, or over each interval of keys that the mask leaves."""
    mask = einsum.domain
    if mask is not None and mask.column not in {i.name for i in indices} and not _carries_pairs(einsum, mask):
        column = places[mask.column]
        seen = (_ends(mask, interval, places) for interval in mask.intervals)
        seen = sp.Or(*(sp.And(first <= column, column <= last) for first, last in seen))
        point = sp.Piecewise((point, seen), (0, True))
    plain = [
        sp.Tuple(places[i.name], sp.Integer(0), i.extent - 1) for i in indices if mask is None or i.name != mask.column
    ]
    if mask is None or len(plain) == len(indices):
        return RANGES[reduce](point, plain)
    terms = []
    for interval in mask.intervals:
        ranges = [sp.Tuple(places[mask.column], *_ends(mask, interval, places))]
        if interval.copies != 1:
            ranges.append(sp.Tuple(COPY, sp.Integer(0), interval.copies - 1))
        terms.append(RANGES[reduce](point, ranges + plain))
    return terms[0] if len(terms) == 1 else TERMS[reduce](terms)


def _carries_pairs(einsum: Einsum, mask: Mask) -> bool:
    """Whether an operand carries both of the mask's indices: then it is 0 outside the mask already."""
    return any({mask.row, mask.column} <= {i.name for i in t.indices} for t in einsum.inputs)


def _ends(mask: Mask, interval: Interval, places: Places) -> tuple[sp.Expr, sp.Expr]:
    """The first and the last key of an interval that a row sees, of its part where the keys are cut."""
    row = places[mask.row]
    if mask.part:
        mask, interval = (inside := mask.inside(places[mask.part])), inside.intervals[mask.intervals.index(interval)]
    first = sp.Integer(0) if interval.first is None else sp.Max(0, interval.first.subs(ROW, row))
    last = mask.columns - 1
    last = last if interval.last is None else sp.Min(last, interval.last.subs(ROW, row))
    here = [row >= interval.since] if interval.since is not None else []
    here += [row < interval.until] if interval.until is not None else []
    return first, sp.Piecewise((last, sp.And(*here)), (-1, True)) if here else last

r"""Lower bounds that hold for every order of the work: compulsory traffic, and each contraction by Hoelder-Brascamp-Lieb.

Cut the run of a program with M elements of fast memory into segments of M loads and stores. In one segment at most 2 M elements
of each tensor that lives in slow memory are at hand. By Hoelder-Brascamp-Lieb a set of points of the iteration space with
projections of at most 2 M elements has at most

    V(2 M) = max { prod_i x_i :  prod_{i in T} x_i <= 2 M for each such tensor T,  1 <= x_i <= extent_i }

points, so |space| points take at least |space|/V(2 M) - 1 whole segments of M transfers. The maximum is the same kind of linear
program in logarithms as that of the tiles; its dual weights are the exponents s_T of the inequality. A tensor that never
crosses memory, such as the scores inside a fused kernel, gives no limit: that bound is weaker, and holds for any program that
evaluates each product of the contraction at least once.

Source: Irony, Toledo & Tiskin 2004; Christ, Demmel, Knight, Scanlon & Yelick 2013, arXiv:1308.0068, theorems 3.2 and 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import sympy as sp

from derive.einsum import Einsum, Tensor
from derive.flops import is_contraction
from derive.growth.cone import Cone
from derive.growth.linear import ZERO, minus
from derive.growth.parameters import Parameters, exponents_of
from derive.growth.posynomial import Facts, Term, below
from derive.growth.program import Program, envelope, leading
from derive.schedule import Schedule
from derive.substitution import put
from derive.symbols import M
from derive.traffic import compulsory


@dataclass(frozen=True)
class Bound:
    """A lower bound on the elements that cross between slow and fast memory.

    Attributes:
        monomial: its class.
        region: where it holds.
        constant: the number in front; ``None`` where only the class is known.
        status: ``derived`` or ``cited``.
        how: the theorem, or the argument.
        source: where it was published.
        weights: the exponents of the Hoelder-Brascamp-Lieb inequality, by tensor.
        less: what is taken off, in elements: M for a run's last, incomplete segment.
        note: what a theorem assumes, how its statement was obtained, and how the paper puts it.
    """

    monomial: sp.Expr
    region: Cone
    constant: sp.Expr | None
    status: str
    how: str
    source: str
    weights: Mapping[str, Fraction] = field(hash=False)
    less: sp.Expr
    note: str = ""


def compulsory_bounds(
    schedule: Schedule, parameters: Parameters, region: Cone, alike: Mapping[sp.Symbol, sp.Expr], facts: Facts
) -> list[Bound]:
    """Inputs read and outputs written, once each: the monomials that lead, each at its exact constant."""
    terms = below(put(compulsory(schedule.graph).total.amount, alike), facts)
    constants: dict[tuple[Fraction, ...], sp.Expr] = {}
    for term in terms:
        form = parameters.form(term.exponents)
        constants[form] = constants.get(form, sp.Integer(0)) + term.coefficient
    return [
        Bound(
            parameters.monomial(form),
            region,
            constants[form],
            "derived",
            "compulsory: every input is read and every output written",
            "",
            {},
            sp.Integer(0),
        )
        for form in leading(region, constants)
    ]


def contraction_bounds(
    schedule: Schedule,
    parameters: Parameters,
    region: Cone,
    alike: Mapping[sp.Symbol, sp.Expr],
    facts: Facts,
    *,
    fused: bool,
) -> Iterator[Bound]:
    """The bounds of each matrix product of *schedule*.

    Args:
        schedule: whose products and tensors.
        parameters: what the classes speak of.
        region: where the bounds are wanted.
        alike: symbols to count as one.
        facts: what is known of the sizes.
        fused: bound any program for the graph, in which only inputs and outputs cross memory; otherwise those in which
            each kernel of *schedule* runs by itself.
    """
    graph = schedule.graph
    whole = {t.name for t in graph.inputs} | set(graph.outputs)
    for einsum in filter(is_contraction, graph.einsums):
        kernel = schedule.kernel_of[einsum.output.name]
        crossing = whole if fused else {t.name for t in (*schedule.inputs_of(kernel), *schedule.outputs_of(kernel))}
        sources = {t.name: _source(schedule, t, crossing) for t in (*einsum.inputs, einsum.output)}
        tensors = [t for t in (*einsum.inputs, einsum.output) if sources[t.name]]
        if tensors:
            yield from _contraction(einsum, tensors, parameters, region, alike, facts)


def _source(schedule: Schedule, tensor: Tensor, crossing: set[str]) -> bool:
    """Whether each element of *tensor* stands for one that crosses memory: itself, or what it is a pointwise image of."""
    if tensor.name in crossing:
        return True
    producer = schedule.graph.producers.get(tensor.name)
    if producer is None or producer.reduced:
        return False
    return any(t.indices == tensor.indices and t.name in crossing for t in producer.inputs)


def _contraction(
    einsum: Einsum,
    tensors: Sequence[Tensor],
    parameters: Parameters,
    region: Cone,
    alike: Mapping[sp.Symbol, sp.Expr],
    facts: Facts,
) -> Iterator[Bound]:
    volume = einsum.points.xreplace(dict(alike))
    terms = {parameters.form(t.exponents): t for t in below(sp.expand(volume), facts)}
    for form in leading(region, terms):
        yield from _segments(einsum, tensors, parameters, region, alike, terms[form])


def _segments(
    einsum: Einsum,
    tensors: Sequence[Tensor],
    parameters: Parameters,
    region: Cone,
    alike: Mapping[sp.Symbol, sp.Expr],
    volume: Term,
) -> Iterator[Bound]:
    """The bounds that follow from at least *volume* points, a monomial with its coefficient; a mask leaves fewer than all."""
    sides = {i.name: sp.Symbol(f"x_{i.name}", positive=True) for i in einsum.space}
    extents = {sides[i.name]: exponents_of(i.extent.xreplace(dict(alike))) for i in einsum.space if i.extent != 1}
    sides = {name: side for name, side in sides.items() if side in extents}
    empty = Program(parameters, tuple(extents), (), (), ())
    points = {**volume.exponents, **dict.fromkeys(extents, Fraction(-1))}
    points[M] = points.get(M, ZERO) + 1
    limits = [
        empty.row(t.name, {**{sides[i.name]: Fraction(1) for i in t.indices if i.name in sides}, M: Fraction(-1)})
        for t in tensors
    ]
    for side, extent in extents.items():
        limits.append(empty.row(f"{side} <= extent", {side: Fraction(1), **{s: -e for s, e in extent.items()}}))
    sizes = tuple(parameters.form(e) for e in extents.values())
    program = Program(parameters, tuple(extents), sizes, (empty.row("segments", points),), tuple(limits))
    names = {t.name for t in tensors}
    for piece in envelope(program, region).pieces:
        monomial = parameters.monomial(piece.form)
        one = parameters.form({M: Fraction(1)})
        cell = piece.cell.cut(minus(piece.form, one))
        if monomial == M or not cell.has_interior:
            continue  # one segment holds it all: nothing follows
        weights = {name: w for name, w in piece.weights.items() if name in names}
        total = sp.Rational(sum(weights.values(), ZERO))
        yield Bound(
            monomial,
            cell,
            volume.coefficient * 2**-total,
            "derived",
            f"Hoelder-Brascamp-Lieb on {einsum.output.name}, with {', '.join(sorted(names))} in slow memory",
            "Christ et al. 2013, arXiv:1308.0068, theorem 4.1 (with the segments of Irony, Toledo & Tiskin 2004)",
            weights,
            M,
        )

"""A derivation as LaTeX: the equations of a graph, what a step made of them, and a rule's equation in general."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from derive.denote import equation
from derive.einsum import Map, Reduce
from derive.graph import Graph
from outputs.formula import latex

if TYPE_CHECKING:
    from derive.einsum import Einsum, Index
    from derive.paging import Paging
    from derive.rewrite import Rule, Step
    from derive.schedule import Kernel, Schedule


def einsum_latex(einsum: Einsum) -> str:
    """An Einsum as the equation it is."""
    read = [_access(t, einsum.previous) for t in einsum.inputs]
    bodies = {
        Map.COPY: "{0}",
        Map.VIEW: "{0}",
        Map.MUL: r"{0} \, {1}",
        Map.ADD: "{0} + {1}",
        Map.SUB: "{0} - {1}",
        Map.DIV: r"{0} / {1}",
        Map.NEG: "-{0}",
        Map.EXP: r"\exp {0}",
        Map.LOG: r"\log {0}",
        Map.TANH: r"\tanh {0}",
        Map.SIGMOID: r"\sigma({0})",
        Map.RELU: r"\operatorname{{relu}}({0})",
        Map.MAXIMUM: r"\max({0}, {1})",
        Map.TOP: r"\operatorname{{top}}_{{{index}}} {0}",
        Map.GATHER: r"\operatorname{{gather}}({0}, {1})",
        Map.POSITION: "{index}",
        Map.KEEP: r"\operatorname{{keep}}_{{{0}}}",
        Map.INVERSE: r"\left(I + \operatorname{{tril}}({0}, -1)\right)^{{-1}}",
        Map.SOFTMAX: r"\operatorname{{softmax}} {0}",
        Map.SOFTMAX_GRADIENT: r"{1} \, \partial\operatorname{{softmax}}({0})",
    }
    along = einsum.selected or next(iter(einsum.output.indices), None)
    body = bodies[einsum.map].format(*read, index="" if along is None else along.name)
    if einsum.paging is not None:
        body = _from_page(einsum, einsum.paging)
    if einsum.reduce is not None:
        operator = {Reduce.SUM: r"\sum", Reduce.MAX: r"\max"}[einsum.reduce]
        body = f"{operator}_{{{','.join(i.name for i in einsum.reduced)}}} {body}"
    return f"{_access(einsum.output)} = {body}"


def _from_page(einsum: Einsum, paging: Paging[Index]) -> str:
    """What is gathered from pages, at its place: that of row k in the page which the table's entry for it names."""
    pages, table = einsum.inputs
    first, *rest = paging.rows
    number = first.name
    for index in rest:
        number = rf"({number} \, {latex(index.extent)} + {index.name})"
    rows = latex(paging.row.extent)
    page = _access(table, at={paging.entry.name: rf"\lfloor {number} / {rows} \rfloor"})
    return _access(pages, at={paging.page.name: page, paging.row.name: rf"{number} \operatorname{{mod}} {rows}"})


def _access(tensor: Any, behind: str | None = None, at: Mapping[str, str] | None = None) -> str:
    """A tensor at its indices; one step behind along *behind*, and *at* a place in the stead of some."""
    base, _, subscript = tensor.name.partition("_")
    name = rf"\mathrm{{{base}}}" if len(base) > 1 else base
    name = rf"{name}^{{\mathrm{{{subscript.replace('_', ',')}}}}}" if subscript else name
    places = at or {}
    indices = ",".join(f"{i.name}-1" if i.name == behind else places.get(i.name, i.name) for i in tensor.indices)
    return f"{name}_{{{indices}}}" if indices else name


def step_latex(step: Step) -> str:
    """What a step did, as mathematics: the new equations of an algebra step, the new loop nest of a schedule step."""
    if isinstance(step.after, Graph):
        return _new_equations(step.before, step.after)  # type: ignore[arg-type]
    return _new_nests(step.before, step.after)  # type: ignore[arg-type]


@cache
def statement_sides(rule: Rule[Any]) -> tuple[str, str] | None:
    """A rule's equation, computed from what it does to its own example; ``None`` when both sides are written alike."""
    before = rule.example()
    if not isinstance(before, Graph):
        return None
    after = rule.rewrite(before, next(iter(rule.matches(before))))
    name = before.outputs[0]
    left, right = (latex(equation(graph, name).rhs) for graph in (before, after))
    return None if left == right else (left, right)


def statement_latex(rule: Rule[Any]) -> str | None:
    """A rule's equation on one line."""
    sides = statement_sides(rule)
    return None if sides is None else " = ".join(sides)


def new_equations(before: Graph, after: Graph) -> list[str]:
    """The equations that a rewriting of *before* brought, one a line."""
    return [einsum_latex(e) for e in after.einsums if e not in before.einsums]


def rescaled_by(before: Graph, after: Graph) -> list[str]:
    """The running maxima that new sums are rescaled by."""
    return sorted({e.rescale for e in after.einsums if e not in before.einsums and e.rescale})


def _new_equations(before: Graph, after: Graph) -> str:
    note = "".join(rf" \text{{ (rescaled as }} {m} \text{{ rises)}}" for m in rescaled_by(before, after))
    return r",\quad ".join(new_equations(before, after)) + note


def _new_nests(before: Schedule, after: Schedule) -> str:
    return r",\quad ".join(nest_latex(kernel) for kernel in after.kernels if kernel not in before.kernels)


def nest_latex(kernel: Kernel) -> str:
    """The loop nest of a kernel; how many operations it runs where it has none."""
    loops = r" \triangleright ".join(
        (r"\mathrm{grid}\;" if loop.grid else r"\mathrm{for}\;")
        + r" \times ".join(i.name for i in loop.indices)
        + rf" : {latex(loop.tile)}"
        for loop in kernel.loops
    )
    return loops or rf"\text{{kernel of {len(kernel.einsums)} operations}}"

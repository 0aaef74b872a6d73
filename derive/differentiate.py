r"""Reverse-mode differentiation of a graph: from the gradients of its outputs to those of its inputs.

Every Einsum ``out[o] = sum_r map(A, B)`` hands the gradient dout on to its inputs, written once for each operator:

    map             dA                        dB
    A               sum dout
    A * B           sum dout B                sum dout A
    A + B, A - B    sum dout                  sum dout, -sum dout
    A / B           sum dout / B              -sum dout out / B
    exp, log, neg   dout out, dout / A, -dout
    tanh, sigmoid   dout - dout out out, dout out - dout out out
    softmax         dout J, with the Jacobian of one row

Each sum runs over the indices of the Einsum that its input lacks: a key/value head that a group of query heads shares
gathers its gradient from all of them. A mask thins out the gradient's points as it does the Einsum's own.

A maximum hands nothing on. That is right where no output changes when the maximum is held fixed, as in a softmax shifted by
its row maximum: exp(S - m) and its sum both carry the factor exp(-m), which cancels in their quotient. It is checked
(``shift_cancels``), not assumed.

What is generated from coordinates alone (a dropout mask, positions) gets no gradient, nor does what is made of it alone.

What the gradients read of the forward pass (P, V, ...) is taken as saved: the graph that comes out has the forward Einsums
as ``given``. Which of it is computed again instead is a rule's choice.

Source: Griewank & Walther 2008, Evaluating Derivatives, section 3.2; the attention case is Dao et al. 2022,
arXiv:2205.14135, appendix B.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import sympy as sp

from derive.einsum import Einsum, Index, Map, Reduce, Tensor
from derive.errors import IllFormedError
from derive.graph import Graph

SUMMABLE = (Map.COPY, Map.MUL, Map.ADD, Map.SUB)
"""Operators whose sums are differentiated as they stand; for others the terms get a name of their own first."""


class Signed(NamedTuple):
    """A gradient, or its negative; operators are linear in it, so the sign waits until the end."""

    tensor: Tensor
    negative: bool


def differentiate(graph: Graph, widths: Mapping[str, sp.Expr] | None = None, constants: Collection[str] = ()) -> Graph:
    """The graph of the gradients of *graph*'s inputs.

    Args:
        graph: the forward pass.
        widths: bytes an element by gradient, e.g. ``{"dQs": b_acc}``; else a gradient is as wide as its tensor.
        constants: inputs that need no gradient, such as the slopes of ALiBi.

    Returns:
        A graph that reads what the forward pass reads and makes, and ``dO`` for each output ``O``; it leaves ``dQ`` for
        each input ``Q`` that is no constant.

    Raises:
        IllFormedError: an operator has no derivative here, a maximum that does not cancel is in the way, or a step waits for
            the one before it, whose gradient would run the other way.
    """
    forward = _with_named_terms(graph)
    for e in forward.einsums:
        if e.previous is not None or e.map is Map.VIEW:
            raise IllFormedError(f"{e}: a recurrence, or a view, has no derivative here")
        if e.reduce is Reduce.MAX and not shift_cancels(forward, e):
            raise IllFormedError(f"{e}: the outputs change with this maximum, and it has no derivative here")
    return _Tape(forward, widths or {}, constants).played_back()


def _with_named_terms(graph: Graph) -> Graph:
    """*graph* with sums of exponentials, quotients and such in two steps: the terms, then their sum."""
    for e in graph.einsums:
        if e.reduce is Reduce.SUM and e.map not in SUMMABLE:
            terms = Tensor(f"{e.output.name}_terms", e.space, e.output.width)
            total = Einsum(e.output, (terms,), Map.COPY, Reduce.SUM, e.domain)
            graph = graph.replace((e,), (Einsum(terms, e.inputs, e.map, None, e.domain), total))
    return replace(graph, einsums=tuple(replace(e, rescale=None) for e in graph.einsums))


class _Tape:
    """The forward pass, and the gradients found so far on the way back."""

    def __init__(self, forward: Graph, widths: Mapping[str, sp.Expr], constants: Collection[str]) -> None:
        self.forward, self.widths = forward, widths
        self.wanted = tuple(t for t in forward.inputs if t.name not in constants)
        self.einsums: list[Einsum] = []
        self.parts: dict[str, list[Signed]] = {}
        self.expected = self._contributions()

    def played_back(self) -> Graph:
        """The gradients of all inputs."""
        for name in self.forward.outputs:
            output = self.forward.tensors[name]
            self.parts[name] = [Signed(self._gradient(output), False)]
        for e in reversed(self.forward.einsums):
            if self.parts.get(e.output.name) and e.reduce is not Reduce.MAX:
                gradient = self._total(e.output)
                for position, tensor in enumerate(e.inputs):
                    if tensor.name in self._varies:
                        self._hand_on(e, position, gradient)
        for tensor in self.wanted:
            self._finish(tensor)
        outputs = tuple(f"d{t.name}" for t in self.wanted)
        return Graph(tuple(self.einsums), outputs, self.forward.einsums)

    def _contributions(self) -> dict[str, int]:
        """How many gradients each tensor gathers: one for each reading that an output depends on."""
        found = {name: int(name in self.forward.outputs) for name in self.forward.tensors}
        for e in reversed(self.forward.einsums):
            if found[e.output.name] and e.reduce is not Reduce.MAX:
                for t in e.inputs:
                    found[t.name] += 1
        return found

    @cached_property
    def _varies(self) -> frozenset[str]:
        """Tensors that depend on an input that a gradient is asked for."""
        found = {t.name for t in self.wanted}
        for e in self.forward.einsums:
            if any(t.name in found for t in e.inputs):
                found.add(e.output.name)
        return frozenset(found)

    def _gradient(self, tensor: Tensor, suffix: str = "") -> Tensor:
        name = f"d{tensor.name}"
        return Tensor(name + suffix, tensor.indices, self.widths.get(name, tensor.width))

    def _emit(self, output: Tensor, inputs: tuple[Tensor, ...], operator: Map, of: Einsum) -> Tensor:
        """One more Einsum: *operator* on *inputs*, summed over what *output* lacks, where *of*'s mask keeps points."""
        bound = dict.fromkeys(i for t in inputs for i in t.indices)
        summed = any(i not in output.indices for i in bound)
        names = {i.name for i in (*bound, *output.indices)}
        mask = of.domain if of.domain and {of.domain.row, of.domain.column} <= names else None
        self.einsums.append(Einsum(output, inputs, operator, Reduce.SUM if summed else None, mask))
        return output

    def _hand_on(self, e: Einsum, position: int, gradient: Signed) -> None:
        """Add what the *position*-th input of *e* gets of the gradient of its output."""
        tensor = e.inputs[position]
        gathered = self.parts.setdefault(tensor.name, [])
        suffix = "" if self.expected[tensor.name] == 1 else f"_{len(gathered) + 1}"
        operator, factors, flips = self._derivative(e, position, gradient.tensor)
        target = self._gradient(tensor, suffix)
        bound: set[Index] = {i for t in factors for i in t.indices}
        repeats = operator is Map.COPY and bound | set(e.space) <= set(tensor.indices)
        if not repeats and not set(e.space) <= bound:
            first = factors[0]
            missing = tuple(i for i in e.space if i not in first.indices)
            wide = Tensor(f"{first.name}_for_{tensor.name}", (*first.indices, *missing), first.width)
            factors = (self._emit(wide, (first,), Map.COPY, e), *factors[1:])
        gathered.append(Signed(self._emit(target, factors, operator, e), gradient.negative != flips))

    def _derivative(self, e: Einsum, position: int, d: Tensor) -> tuple[Map, tuple[Tensor, ...], bool]:
        """The operator and the factors whose sum is the gradient of one input, and whether its sign changes."""
        if e.map in (Map.COPY, Map.ADD, Map.SUB, Map.NEG):
            return Map.COPY, (d,), e.map is Map.NEG or (e.map is Map.SUB and position == 1)
        if e.map is Map.MUL:
            return Map.MUL, (d, e.inputs[1 - position]), False
        if e.map is Map.DIV and position == 0:
            return Map.DIV, (d, e.inputs[1]), False
        if e.map is Map.DIV:
            product = Tensor(f"{d.name}_{e.output.name}", e.output.indices, d.width)
            return Map.DIV, (self._emit(product, (d, e.output), Map.MUL, e), e.inputs[1]), True
        if e.map is Map.EXP:
            return Map.MUL, (d, e.output), False
        if e.map is Map.LOG:
            return Map.DIV, (d, e.inputs[0]), False
        if e.map in (Map.TANH, Map.SIGMOID):
            once = Tensor(f"{d.name}_{e.output.name}", e.output.indices, d.width)
            twice = Tensor(f"{d.name}_{e.output.name}_squared", e.output.indices, d.width)
            self._emit(once, (d, e.output), Map.MUL, e)
            self._emit(twice, (once, e.output), Map.MUL, e)
            return Map.SUB, (d if e.map is Map.TANH else once, twice), False
        if e.map is Map.SOFTMAX:
            return Map.SOFTMAX_GRADIENT, (e.output, d), False
        raise IllFormedError(f"{e}: {e.map.value} has no derivative here")

    def _total(self, tensor: Tensor) -> Signed:
        """The sum of the gradients that *tensor* has gathered."""
        parts = sorted(self.parts[tensor.name], key=lambda part: part.negative)
        total = parts[0]
        last = "_total" if tensor.name in self.forward.outputs else ""
        for n, part in enumerate(parts[1:], 2):
            output = self._gradient(tensor, last if n == len(parts) else f"_upto_{n}")
            operator = Map.SUB if part.negative != total.negative else Map.ADD
            self.einsums.append(Einsum(output, (total.tensor, part.tensor), operator))
            total = Signed(output, total.negative)
        return total

    def _finish(self, tensor: Tensor) -> None:
        """Leave the gradient of an input under its own name and with its own sign."""
        if not self.parts.get(tensor.name):
            raise IllFormedError(f"no output depends on the input {tensor}, so it has no gradient")
        total = self._total(tensor)
        if total.negative:
            wrong = Tensor(f"{total.tensor.name}_negative", tensor.indices, total.tensor.width)
            renamed = (replace(e, output=wrong) if e.output == total.tensor else e for e in self.einsums)
            self.einsums = [*renamed, Einsum(total.tensor, (wrong,), Map.NEG)]


class _Dependence(NamedTuple):
    """How a tensor depends on a maximum m: it is ``(... + shift m) exp(factor m)``, never with both."""

    shift: int = 0
    factor: int = 0


def shift_cancels(graph: Graph, maximum: Einsum) -> bool:
    """Whether the outputs of *graph* stay the same when *maximum* is replaced by anything of its shape.

    Followed through the graph: a shift by m becomes a factor exp(m) under exp and comes back under log; factors add up in
    products and cancel in quotients. What fits neither is taken to depend on m.
    """
    known = {maximum.output.name: _Dependence(shift=1)}
    after = graph.einsums[graph.einsums.index(maximum) + 1 :]
    for e in after:
        read = [known.get(t.name, _Dependence()) for t in e.inputs]
        found = _dependence(e, read, {i.name for i in maximum.output.indices})
        if found is None:
            return False
        known[e.output.name] = found
    return all(known.get(name, _Dependence()) == _Dependence() for name in graph.outputs)


def _dependence(e: Einsum, read: list[_Dependence], carried: set[str]) -> _Dependence | None:
    """How the result of *e* depends on m, which carries the indices *carried*; ``None`` when in no way that is followed."""
    if all(r == _Dependence() for r in read):
        return _Dependence()
    first, second = read[0], read[-1]
    found: _Dependence | None = None
    if e.map is Map.COPY:
        found = first
    elif e.map is Map.NEG:
        found = _Dependence(-first.shift, first.factor)
    elif e.map is Map.EXP and not first.factor:
        found = _Dependence(factor=first.shift)
    elif e.map is Map.LOG and not first.shift:
        found = _Dependence(shift=first.factor)
    elif e.map in (Map.ADD, Map.SUB):
        sign = 1 if e.map is Map.ADD else -1
        if not first.factor and not second.factor:
            found = _Dependence(first.shift + sign * second.shift)
        elif first == second:
            found = first
    elif e.map in (Map.MUL, Map.DIV) and not first.shift and not second.shift:
        found = _Dependence(factor=first.factor + (1 if e.map is Map.MUL else -1) * second.factor)
    if found is None or found == _Dependence() or e.reduce is None:
        return found
    sums_shifts = e.reduce is Reduce.SUM and found.shift != 0
    mixes_rows = bool(carried & {i.name for i in e.reduced})
    return None if sums_shifts or mixes_rows else found

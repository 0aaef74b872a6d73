r"""HBM that is live at once over a forward pass and the backward pass after it.

The kernels of both run one after another. Inputs of the forward pass are always there, and so are the buffers that gradients
are added to, where there are any. What the backward pass reads of the forward pass lives from its writer to its last reader;
what the forward pass computed inside a kernel and the backward pass reads (a log-sum-exp) is written by the last kernel.
Results, and the gradients that the caller hands in, stay to the end. Partial sums that leave the SM need room while their
kernel runs, unless the loop they are summed over has one trip.

Source: Griewank & Walther 2008, Evaluating Derivatives, chapter 4 (the tape); Dao et al. 2022, arXiv:2205.14135, appendix B.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import sympy as sp

from derive.choice import cases
from derive.cost import Cost, Unit
from derive.einsum import Tensor
from derive.errors import IllFormedError
from derive.extremes import greatest
from derive.footprint import spilled
from derive.schedule import Kernel, Schedule


@dataclass(frozen=True)
class Training:
    """A forward pass and the backward pass after it.

    Attributes:
        forward: the schedule of the forward pass.
        backward: that of the backward pass, whose graph says what it reads of the forward pass.
        accumulates: whether each gradient is added to a buffer as large, kept from before, as frameworks do.
        stored: tensors that a kernel computes and keeps in memory while it runs, although no other reads them.

    Raises:
        IllFormedError: the backward pass reads what neither the caller has nor the forward pass computes.
    """

    forward: Schedule
    backward: Schedule
    accumulates: bool = False
    stored: Collection[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        known = {t.name for t in self.forward.graph.inputs} | {e.output.name for e in self.backward.graph.given}
        stray = [e.output.name for e in self.backward.graph.saved if e.output.name not in known]
        if stray or not self.backward.graph.given:
            raise IllFormedError(f"a backward pass reads what a forward pass left; got {self.backward.graph}")

    @property
    def peak(self) -> Cost:
        """Bytes live at once at the worst kernel of either pass."""
        first = [self._forward_live(n) for n in range(len(self.forward.kernels))]
        second = [self._backward_live(n) for n in range(len(self.backward.kernels))]
        amounts = (sp.Add(self._always, *map(_bytes, live), extra) for live, extra in first + second)
        return Cost(greatest(amounts), Unit.BYTE)

    @property
    def _always(self) -> sp.Expr:
        gradients = [self.backward.graph.tensors[name] for name in self.backward.graph.outputs]
        return sp.Add(*map(_bytes, (*self.forward.graph.inputs, *(gradients if self.accumulates else ()))))

    @property
    def _saved(self) -> dict[str, Tensor]:
        """What the backward pass reads of the forward pass, its inputs aside."""
        return {e.output.name: e.output for e in self.backward.graph.saved}

    @property
    def _handed_in(self) -> tuple[Tensor, ...]:
        """The gradients of the results."""
        before = {t.name for t in self.forward.graph.inputs} | {e.output.name for e in self.backward.graph.given}
        return tuple(t for t in self.backward.graph.inputs if t.name not in before)

    def _forward_live(self, n: int) -> tuple[list[Tensor], sp.Expr]:
        """Tensors that are live while kernel *n* of the forward pass runs, and room for its partial sums."""
        graph, kernels = self.forward.graph, self.forward.kernels
        written = {t.name: (k, t) for k, kernel in enumerate(kernels) for t in self.forward.outputs_of(kernel)}
        saved = self._saved
        for name, tensor in saved.items():
            written.setdefault(name, (len(kernels) - 1, tensor))
        live = [
            t
            for name, (k, t) in written.items()
            if k <= n and (name in graph.outputs or name in saved or n <= _last_reader(self.forward, name, k))
        ]
        return live + self._kept(self.forward, kernels[n]), _partial_sums(self.forward, kernels[n])

    def _backward_live(self, n: int) -> tuple[list[Tensor], sp.Expr]:
        """The same for the backward pass."""
        graph, kernels = self.backward.graph, self.backward.kernels
        results = {name: self.forward.graph.tensors[name] for name in self.forward.graph.outputs}
        live = list({**results, **{t.name: t for t in self._handed_in}}.values())
        live += [
            t for name, t in self._saved.items() if name not in results and n <= _last_reader(self.backward, name, -1)
        ]
        for k, kernel in enumerate(kernels[: n + 1]):
            for t in self.backward.outputs_of(kernel):
                if t.name in graph.outputs or n <= _last_reader(self.backward, t.name, k):
                    live.append(t)
        return live + self._kept(self.backward, kernels[n]), _partial_sums(self.backward, kernels[n])

    def _kept(self, schedule: Schedule, kernel: Kernel) -> list[Tensor]:
        return [t for t in schedule.internals_of(kernel) if t.name in self.stored]


def _last_reader(schedule: Schedule, name: str, writer: int) -> int:
    """The last kernel that reads *name*; *writer* when none does."""
    readers = {e.output.name for e in schedule.graph.readers.get(name, ())}
    return max((n for n, kernel in enumerate(schedule.kernels) if readers & set(kernel.einsums)), default=writer)


def _partial_sums(schedule: Schedule, kernel: Kernel) -> sp.Expr:
    """Bytes of the partial sums of *kernel* that need room in memory."""
    total: sp.Expr = sp.Integer(0)
    for tensor in spilled(schedule, kernel):
        reduced = schedule.graph.producers[tensor.name].reduced
        summing = [x for x in kernel.sequential if any(i in reduced for i in x.indices)]
        several = sp.Or(*(x.extent > x.tile for x in summing))
        total += cases((_bytes(tensor), several), (sp.Integer(0), sp.true))
    return total


def _bytes(tensor: Tensor) -> sp.Expr:
    return tensor.size * tensor.width

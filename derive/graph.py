"""An immutable cascade of Einsums, checked when it is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from derive.einsum import Einsum, Index, Reduce, Tensor
from derive.errors import IllFormedError
from derive.mask import Mask

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Einsums that run step by step.

    Attributes:
        index: the index they run along, in order.
        einsums: from the state before a step to the state after it.
    """

    index: str
    einsums: tuple[Einsum, ...]


def _alike(one: Tensor, other: Tensor) -> bool:
    """Whether two readings of a tensor differ in the names of indices alone, or in whether an axis is cut into parts."""
    extents = ([i.extent for i in t.whole.indices] for t in (one, other))
    return one.width == other.width and next(extents) == next(extents)


@dataclass(frozen=True)
class Graph:
    """Einsums in an order in which each reads only what was defined before it, or an input.

    Attributes:
        einsums: what is computed.
        outputs: what it must leave in memory.
        given: Einsums that an earlier program has run, such as the forward pass before a backward one. They say what the
            inputs mean that it saved; a name defined in both has one value, here computed again.

    Raises:
        IllFormedError: a tensor is defined twice, read before it is defined (unless one step behind), read under other
            indices or with another width than it was defined with, an output is never defined, a sum is rescaled by what is
            no maximum, an Einsum inside a recurrence does not carry its index, or the earlier program would need what is
            computed only here. An input may be read under several lists of indices of the same extents.
    """

    einsums: tuple[Einsum, ...]
    outputs: tuple[str, ...]
    given: tuple[Einsum, ...] = ()

    def __post_init__(self) -> None:
        known: dict[str, Tensor] = {}
        if self.given:
            earlier = Graph(self.given, ())
            known |= {t.name: t for e in self.given for t in e.inputs if t.name not in earlier.producers}
            for e in self.einsums:
                name = e.output.name
                if name in known:
                    raise IllFormedError(f"{e}: an earlier program reads {name}, which is defined only here")
                if name in earlier.producers and earlier.tensors[name] != e.output.whole:
                    raise IllFormedError(f"{e}: an earlier program left {earlier.tensors[name]}; a name has one value")
                for t in e.inputs:
                    if t.name in earlier.producers and earlier.tensors[t.name] != t.whole:
                        raise IllFormedError(f"{e}: {t} is read, but an earlier program left {earlier.tensors[t.name]}")
        defined: set[str] = set()
        maxima: set[str] = set()
        made = {e.output.name for e in (*self.given, *self.einsums)}
        awaited = {e.inputs[0].name for e in self.einsums if e.previous is not None}
        for einsum in self.einsums:
            for tensor in einsum.inputs:
                first = known.setdefault(tensor.name, tensor)
                if einsum.previous is None:
                    awaited.discard(tensor.name)
                if first != tensor and (tensor.name in made or not _alike(first, tensor)):
                    raise IllFormedError(
                        f"{einsum}: {tensor} is read, but it is {known[tensor.name]} elsewhere; "
                        "a tensor has one list of indices and one width"
                    )
            name = einsum.output.name
            if name in defined:
                raise IllFormedError(f"{einsum}: {name} is defined twice; give the second one another name")
            if name in known and (name not in awaited or known[name] != einsum.output):
                raise IllFormedError(f"{einsum}: {name} is read before it is defined; move its definition up")
            if einsum.rescale is not None and einsum.rescale not in maxima:
                raise IllFormedError(f"{einsum}: {einsum.rescale} is no running maximum that is defined before it")
            known[name] = einsum.output
            defined.add(name)
            if einsum.reduce is Reduce.MAX:
                maxima.add(name)
        for name in self.outputs:
            if name not in defined:
                raise IllFormedError(f"the output {name} is defined by no Einsum; the graph defines {sorted(defined)}")

        self.recurrences  # noqa: B018  (checked when the graph is built)

    @cached_property
    def recurrences(self) -> tuple[Recurrence, ...]:
        """The Einsums that must run step by step, each run from a state to what it becomes, all that stands between included.

        Raises:
            IllFormedError: one of them does not carry the index of the recurrence, or two recurrences over different indices
                overlap.
        """
        found: list[tuple[str, int, int]] = []
        position = {e.output.name: n for n, e in enumerate(self.einsums)}
        for first, e in enumerate(self.einsums):
            if e.previous is None:
                continue
            index, last = e.previous, max(first, position.get(e.inputs[0].name, first))
            if found and first <= found[-1][2]:
                other, start, end = found.pop()
                if other != index:
                    raise IllFormedError(
                        f"{e}: it runs along {index} inside a recurrence along {other}; take them apart"
                    )
                first, last = start, max(last, end)
            found.append((index, first, last))
        runs = []
        for index, first, last in found:
            run = self.einsums[first : last + 1]
            for e in run:
                if index not in {i.name for i in e.output.indices} or e.map.is_generated or e.map.is_selection:
                    raise IllFormedError(
                        f"{e}: it stands inside a recurrence along {index} and needs no step of it, or all; move it out"
                    )
            runs.append(Recurrence(index, run))
        return tuple(runs)

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name: inputs in order of first use, then the rest in order of definition."""
        found = {t.name: t for t in self.inputs}
        for e in self.einsums:
            found |= {t.name: t for t in e.inputs if not t.indices} | {e.output.name: e.output}
        return found

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors that are read and never defined; a scalar is a kernel's argument and no tensor in memory."""
        defined = {e.output.name for e in self.einsums}
        seen = {t.name: t for e in self.einsums for t in e.inputs if t.name not in defined and t.indices}
        return tuple(seen.values())

    @cached_property
    def sources(self) -> tuple[Tensor, ...]:
        """Its inputs and those of the program that ran before it, without what that program made."""
        if not self.given:
            return self.inputs
        earlier = Graph(self.given, ())
        seen = {t.name: t for t in (*earlier.inputs, *self.inputs) if t.name not in earlier.producers}
        return tuple(seen.values())

    @cached_property
    def saved(self) -> tuple[Einsum, ...]:
        """The Einsums of the program before it whose results it reads from memory."""
        read = {t.name for t in self.inputs}
        return tuple(e for e in self.given if e.output.name in read)

    @cached_property
    def producers(self) -> dict[str, Einsum]:
        """The Einsum that defines each tensor."""
        return {e.output.name: e for e in self.einsums}

    @cached_property
    def readers(self) -> dict[str, tuple[Einsum, ...]]:
        """The Einsums that read each tensor, in order."""
        found: dict[str, tuple[Einsum, ...]] = {}
        for e in self.einsums:
            for name in dict.fromkeys(t.name for t in e.inputs):
                found[name] = (*found.get(name, ()), e)
        return found

    @cached_property
    def indices(self) -> dict[str, Index]:
        """Every index by name."""
        found = {i.name: i for e in (*self.given, *self.einsums) for i in e.space}
        selections = (e for e in (*self.given, *self.einsums) if e.map.is_selection)
        return found | {i.name: i for e in selections for t in (*e.inputs, e.output) for i in t.indices}

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """The masks of its Einsums: one, unless queries also see only some of the keys that are selected for them."""
        return tuple(dict.fromkeys(e.domain for e in (*self.einsums, *self.given) if e.domain is not None))

    @property
    def mask(self) -> Mask | None:
        """The first of them, where there is one."""
        return self.masks[0] if self.masks else None

    def unused(self, of: str, *names: str) -> tuple[str, ...]:
        """*names* as they are, or all of them marked by what they are made for where one is taken here or earlier."""
        taken = {t.name for e in (*self.given, *self.einsums) for t in (*e.inputs, e.output)}
        return names if not taken & set(names) else tuple(f"{name}_{of}" for name in names)

    def replace(self, old: Iterable[Einsum], new: Iterable[Einsum]) -> Graph:
        """The graph with *new* where the last of *old* stood."""
        old, new = tuple(old), tuple(new)
        if not old:
            return self
        last = max(self.einsums.index(e) for e in old)
        einsums: list[Einsum] = []
        for position, e in enumerate(self.einsums):
            if e not in old:
                einsums.append(e)
            if position == last:
                einsums.extend(new)
        return dataclasses.replace(self, einsums=tuple(einsums))

    def to_networkx(self) -> nx.DiGraph[str]:
        """A frozen bipartite view, tensors and Einsums (named by what they define, with ``=``), for graph algorithms."""
        import networkx as nx

        view: nx.DiGraph[str] = nx.DiGraph()
        for e in self.einsums:
            node = f"{e.output.name} ="
            view.add_edges_from((t.name, node) for t in e.inputs)
            view.add_edge(node, e.output.name)
        nx.freeze(view)
        return view

    def __str__(self) -> str:
        return "\n".join(map(str, self.einsums))

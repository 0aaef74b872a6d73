"""A variant of attention: its cascade in Einsum notation, and what may be left unsaid about its sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import sympy as sp

from derive.einsum import Index, Map
from derive.errors import BadValueError
from derive.graph import Graph
from derive.mask import Mask
from derive.masks import MASKS, Pattern
from derive.notation import cascade
from derive.places import places
from derive.symbols import B, b, b_kv, b_p, b_s, d, d_v, h, h_k

__all__ = ["MASKS", "Pattern", "Variant"]


@dataclass(frozen=True)
class Variant:
    """What a file in ``derive/attention`` holds.

    Attributes:
        name: what a person types.
        says: one sentence on what it is.
        text: its cascade, one Einsum a line.
        extents: the extent of each index.
        reference: where it was published.
        defaults: the value of a symbol that is not given, perhaps in other symbols.
        divides: (divisor, dividend) pairs of symbols that must divide.
        at_most: (part, whole) pairs: a symbol, and the size that it cannot exceed.
        outputs: what it must leave in memory.
        one_sequence: whether queries and keys come from one sequence, so that N stands for both lengths.
        direction: ``forward`` or ``backward``.
        schedules: those that are compared when none is named.
        constants: inputs that no gradient is asked for, such as the slopes of ALiBi.
        widths: bytes an element of tensors whose width is not the operands'.
        own_mask: the mask that it always has; a variant that sums over the keys by a recurrence takes no other.
        no_mask: why it takes no mask at all, where its own one is ``full``.
    """

    name: str
    says: str
    text: str
    extents: Mapping[str, sp.Expr]
    reference: str
    defaults: Mapping[sp.Symbol, sp.Expr] = field(
        default_factory=lambda: {d_v: d, h_k: h, h: sp.Integer(1), B: sp.Integer(1)}
    )
    divides: tuple[tuple[sp.Symbol, sp.Symbol], ...] = ()
    at_most: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()
    outputs: tuple[str, ...] = ("O",)
    one_sequence: bool = True
    direction: str = "forward"
    schedules: tuple[str, ...] = ("naive", "flash2")
    constants: tuple[str, ...] = ()
    widths: Mapping[str, sp.Expr] = field(default_factory=dict)
    own_mask: str | None = None
    no_mask: str = ""

    def graph(self, mask: str | Pattern = "full", given: Collection[sp.Symbol] | None = None) -> Graph:
        """Its cascade under *mask*.

        Args:
            mask: one of ``MASKS``, or a pattern with a list.
            given: symbols to keep although they have a default; every other default is put in. ``None`` keeps all.

        Raises:
            UnknownNameError: no mask has this name.
            BadValueError: it has a mask of its own, and *mask* is another one, or it takes none, or it selects keys and those
                that a query sees do not stand together.
        """
        pattern = Pattern(mask) if isinstance(mask, str) else mask
        if self.own_mask is not None:
            if pattern.name not in ("full", self.own_mask):
                raise self.refuses(pattern.name)
            pattern = Pattern(self.own_mask)
        extents = {name: self._with_defaults(e, given) for name, e in self.extents.items()}

        def under(masks: tuple[Mask, ...]) -> Graph:
            return cascade(
                self.text,
                extents,
                outputs=self.outputs,
                width=b,
                widths={"K": b_kv, "V": b_kv, "K_rep": b_kv, "V_rep": b_kv, "S": b_s, "P": b_p, **self.widths},
                mask=masks,
            )

        own = pattern.mask(extents["q"], extents.get("k", extents["q"]))
        if own is None:
            return under(())
        if self.own_mask is not None:
            says = f"{self.own_mask} by its recurrence: row q of a chunk sees keys 0..q of it"
            return under((replace(own, says=says),))
        source = selected_from(under(()), "k")
        return under((own,) if source is None else self._of_selected(pattern, own, source))

    def _of_selected(self, pattern: Pattern, slots: Mask, source: Index) -> tuple[Mask, ...]:
        """The masks of the keys that are selected from and, under index k, of the places that the selected ones stand at."""
        keys = pattern.mask(slots.rows, source.extent, column=source.name)
        if type(keys) is not Mask or not keys.is_one_interval:
            raise BadValueError(
                f"{self.name} selects keys under a mask that shows each query keys that stand together, such as mask=causal, "
                f"window, chunk, prefix or docs; got mask={pattern}"
            )
        own = places(keys, slots.column, slots.columns)
        return replace(keys, says=own.says), own

    def takes(self, mask: str) -> bool:
        """Whether it has a graph under the mask of this name, which needs no list."""
        try:
            return bool(self.graph(mask).einsums)
        except BadValueError:
            return False

    def seen_by(self, mask: Mask | None) -> str:
        """In words which keys a query sees under the *mask* that its graph has."""
        if mask is not None:
            return mask.says
        return "no mask" if self.own_mask in (None, "full") else f"{self.own_mask} by its recurrence"

    def refuses(self, mask: str) -> BadValueError:
        """The error of a *mask* given to a variant that has its own, or takes none."""
        if self.no_mask:
            return BadValueError(f"{self.name} takes no mask: {self.no_mask}; leave mask={mask} out")
        return BadValueError(f"{self.name} is causal by its recurrence and takes no other mask; leave mask={mask} out")

    def named_schedules(self, text: str | None) -> tuple[str, ...]:
        """The names in *text*, separated by commas, each once; its own when there is no text."""
        if text is None:
            return self.schedules
        return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))

    @property
    def symbols(self) -> frozenset[sp.Symbol]:
        """The sizes it is written in."""
        return frozenset(s for extent in self.extents.values() for s in extent.free_symbols)

    def _with_defaults(self, extent: sp.Expr, given: Collection[sp.Symbol] | None) -> sp.Expr:
        if given is None:
            return extent
        for symbol, default in self.defaults.items():  # in order: h_k falls back to h, h to 1
            if symbol not in given:
                extent = extent.subs(symbol, default)
        return extent


def selected_from(graph: Graph, place: str) -> Index | None:
    """The index of the keys that are selected from, where *place* says which of the selected ones is meant."""
    gathers = (e for e in graph.einsums if e.map is Map.GATHER)
    return next((e.selected for e in gathers if place in {i.name for i in e.inputs[1].indices}), None)

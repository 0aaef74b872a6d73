r"""The cache of keys and values of a stack of layers: its bytes as a function of the length, and the length as one of bytes.

What is cached follows from the graph: the inputs that carry the key index and not the query's, each once however often it is
read (a latent that serves as K and as V is one tensor). How many tokens a layer keeps follows from its mask: those that the
last query sees, since the first key that a query sees never moves back. For L layers, L_w of them with a window of W, and t
bytes a token and layer,

    bytes(N) = B t ((L - L_w) N + L_w min(N, W)),

and in pages of n_page tokens, of which the last may be part empty, ceil(N/n_page) pages are allocated and named by a table
of 4 bytes each. What is allocated is not what is read: reads stop at N, and the table is read beside them.

The longest N in C_kv bytes is floor(C_kv / (B t L)) while that is at most W, else floor((C_kv / (B t) - L_w W)/(L - L_w)).

Source: Shazeer 2019, arXiv:1911.02150, section 2.4 (the cache of an incremental step); Kwon et al. 2023, PagedAttention,
arXiv:2309.06180, section 4 (pages and their table).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from derive.choice import cases
from derive.einsum import Map, Tensor
from derive.errors import DomainError
from derive.extremes import up
from derive.graph import Graph
from derive.masks import Pattern
from derive.parallel.link import Device
from derive.symbols import B, C_kv, N, n_page

TABLE_ENTRY = sp.Integer(4)
"""Bytes that name a page: a 32-bit integer."""


def key_of(graph: Graph) -> str:
    """The index of the keys in memory: what rows are gathered from along, where some are, else ``k``.

    Raises:
        DomainError: there are keys of several kinds.
    """
    inputs = {t.name for t in graph.inputs}
    selections = (e for e in graph.einsums if e.map is Map.GATHER and e.inputs[0].name in inputs)
    found = dict.fromkeys(e.selected.name for e in selections if e.selected is not None)
    if found and any(i.name == "k" for t in graph.inputs for i in t.indices if t.name not in _positions(graph)):
        found["k"] = None
    if len(found) > 1:
        raise DomainError(
            f"there are keys of several kinds, along {' and '.join(found)}; ask about each kind by itself"
        )
    return next(iter(found), "k")


def _positions(graph: Graph) -> set[str]:
    return {e.inputs[1].name for e in graph.einsums if e.map is Map.GATHER}


def cached(graph: Graph, key: str | None = None, row: str = "q") -> tuple[Tensor, ...]:
    """The inputs of *graph* that carry the key index and not the query's: what a later query needs again.

    Raises:
        DomainError: no input carries it, or the graph is a backward pass, after which nothing is kept.
    """
    key = key or key_of(graph)
    carried = {t: {i.name for i in t.indices} for t in graph.inputs}
    found = tuple(t for t, names in carried.items() if key in names and row not in names)
    if graph.given or not found:
        why = "a backward pass leaves no cache" if graph.given else f"no input carries the key index {key}"
        raise DomainError(f"there is nothing to cache: {why}")
    return found


def token_elements(graph: Graph, device: Device | None = None, key: str | None = None) -> Mapping[str, sp.Expr]:
    """Elements of one token in one layer and sequence, by cached tensor; on one device, if it is one of several."""
    found = {}
    key = key or key_of(graph)
    for tensor in cached(graph, key):
        sequences = B if any(i.extent == B for i in tensor.indices) else sp.Integer(1)
        size = tensor.size if device is None else device.part(tensor)
        found[tensor.name] = sp.cancel(size / (_rows_along(graph, key) * sequences))
    return found


def _rows_along(graph: Graph, key: str) -> sp.Expr:
    """How many tokens lie along the key index: one each, or of pages a page's."""
    found = (e.paging for e in graph.einsums)
    rows = next((p.row.extent for p in found if p is not None and p.page.name == key), sp.Integer(1))
    return graph.indices[key].extent * rows


def token_bytes(graph: Graph, device: Device | None = None, key: str | None = None) -> sp.Expr:
    """Bytes of one token in one layer and sequence."""
    widths = {t.name: t.width for t in cached(graph, key)}
    return sp.Add(*(amount * widths[name] for name, amount in token_elements(graph, device, key).items()))


def kept_tokens(pattern: Pattern) -> sp.Expr:
    """Tokens that a layer keeps after N: what the last query sees, and with it every later one.

    Raises:
        DomainError: a mask under which the number kept does not grow with N, or later queries see what the last does not.
    """
    mask = pattern.mask(sp.Integer(1), N)
    if mask is None:
        return N
    if any(i.copies != 1 or i.since is not None or i.until is not None for i in mask.intervals):
        raise DomainError(
            f"mask={pattern.name}: later queries see keys that the last one does not; cache as for mask=full"
        )
    found = mask.keys_touched
    if found.has(sp.floor, sp.ceiling, sp.Sum) or pattern.numbers:
        raise DomainError(
            f"mask={pattern.name} keeps now more tokens and now fewer; cache as for mask=window of its longest"
        )
    return _as_minimum(found)


def _as_minimum(amount: sp.Expr) -> sp.Expr:
    """``a - max(b, c)`` as ``min(a - b, a - c)``."""
    for term in sp.Add.make_args(amount):
        if (-term).func is sp.Max:
            rest = amount - term
            return sp.Min(*(sp.expand(rest - a) for a in (-term).args), evaluate=False)
    return amount


@dataclass(frozen=True)
class Layers:
    """Layers that are alike.

    Attributes:
        count: how many.
        token: bytes of one token in one layer and sequence.
        kept: tokens that a layer keeps of N.
    """

    count: sp.Expr
    token: sp.Expr
    kept: sp.Expr = N


@dataclass(frozen=True)
class Stack:
    """Layers of several kinds, perhaps of several variants.

    Attributes:
        layers: each kind.
    """

    layers: tuple[Layers, ...]

    @property
    def bytes(self) -> sp.Expr:
        """Bytes of B sequences of N tokens."""
        return sp.Add(*(B * x.count * x.token * x.kept for x in self.layers))

    @property
    def allocated(self) -> sp.Expr:
        """Bytes of the pages that hold them, the last page of each sequence and layer whole."""
        return sp.Add(*(B * x.count * x.token * n_page * up(x.kept / n_page) for x in self.layers))

    @property
    def table(self) -> sp.Expr:
        """Bytes of the table that a step reads to find the pages: an entry for each, in each layer that it is read in."""
        return sp.Add(*(B * x.count * TABLE_ENTRY * up(x.kept / n_page) for x in self.layers))

    @property
    def windows(self) -> tuple[sp.Expr, ...]:
        """Lengths at which layers stop keeping more tokens, where each kind keeps all or the last few."""
        found = []
        for x in self.layers:
            if x.kept == N:
                continue
            sizes = [a for a in x.kept.args if a != N] if x.kept.func is sp.Min and N in x.kept.args else []
            if len(sizes) != 1 or sizes[0].has(N):
                raise DomainError(f"no closed form for the longest N: a layer keeps {x.kept} tokens")
            found.append(sizes[0])
        return tuple(dict.fromkeys(found))

    def slope(self, window: sp.Expr | None = None) -> sp.Expr:
        """Bytes that one more token costs: of all layers, or past *window* of those that go on."""
        going_on = [x for x in self.layers if window is None or x.kept == N]
        return sp.factor(sp.Add(*(B * x.count * x.token for x in going_on)))

    @property
    def longest(self) -> sp.Expr:
        """The longest N whose cache fits C_kv bytes, where at most one window is used.

        Raises:
            DomainError: several windows, or tokens kept in another way (then it is found by search), or there is none.
        """
        if not self.windows:
            return sp.floor(C_kv / self.slope())
        if len(self.windows) > 1:
            raise DomainError(f"no closed form for the longest N with {len(self.windows)} windows")
        (window,) = self.windows
        held = sp.Add(*(B * x.count * x.token * window for x in self.layers if x.kept != N))
        within = C_kv <= self.slope() * window
        if (beyond := self.slope(window)) == 0:
            raise DomainError("there is no longest N: every layer keeps a window alone")
        return cases((sp.floor(C_kv / self.slope()), within), (sp.floor((C_kv - held) / beyond), sp.true))

"""The only maker of symbols: each with its assumption, its meaning and the key a person types for it.

Two SymPy symbols of one name but different assumptions are unequal and print alike, so no other module makes any.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a symbol stands for.

    Attributes:
        key: what a person types before ``=``; empty when the symbol is not set by hand.
        says: one phrase, in the field's words.
        unit: unit of its value; empty for a count.
    """

    key: str
    says: str
    unit: str = ""


MEANINGS: dict[str, Meaning] = {
    "N_q": Meaning("Nq", "queries a head"),
    "N_k": Meaning("Nk", "keys a head"),
    "d": Meaning("d", "head dimension of Q and K"),
    "d_v": Meaning("dv", "head dimension of V and O (default d)"),
    "d_c": Meaning("dc", "width of the latent that keys and values are made of"),
    "d_r": Meaning("dr", "rotary channels of a head beside the latent"),
    "h": Meaning("h", "query heads (default 1)"),
    "h_k": Meaning("hk", "key/value heads (default h)"),
    "B": Meaning("B", "batch (default 1)"),
    "M": Meaning("M", "fast memory of one SM", "elements"),
    "M_reg": Meaning("", "registers of one SM", "elements"),
    "M_L2": Meaning("", "capacity of the L2", "elements"),
    "B_r": Meaning("Br", "query rows of a tile"),
    "B_c": Meaning("Bc", "key rows of a tile"),
    "n_pad": Meaning("pad", "multiple that the widths of matrix products are padded to, such as d"),
    "B_d": Meaning("Bd", "depth of a product's tile: what it sums over at a time"),
    "C": Meaning("ctas", "CTAs that run at once: SMs times CTAs an SM"),
    "C_L2": Meaning("L2", "capacity of one L2", "bytes"),
    "n_L2": Meaning("", "L2 caches that do not share their contents"),
    "W": Meaning("W", "keys of a window, the query's own included"),
    "W_l": Meaning("left", "keys of a window before the query's own"),
    "W_r": Meaning("right", "keys of a window after the query's own"),
    "C_k": Meaning("C", "keys of a chunk"),
    "C_t": Meaning("chunk", "chunks that a recurrence is cut into, tokens of each"),
    "C_b": Meaning("block", "queries, and keys, of a block of a mask that names its blocks"),
    "N_p": Meaning("prefix", "keys of the prefix that every query sees"),
    "N_s": Meaning("sinks", "keys at the start that every later query sees"),
    "N_g": Meaning("globals", "tokens at the start that see all keys and are seen by all queries"),
    "n_d": Meaning("dilation", "positions from one key of a dilated window to the next"),
    "n_t": Meaning("topk", "keys that are selected for each query"),
    "h_i": Meaning("hi", "heads of the indexer that scores all keys"),
    "d_i": Meaning("di", "channels of a head of the indexer"),
    "l_c": Meaning("lc", "tokens of a block that is compressed into one key"),
    "d_s": Meaning("stride", "tokens from one compressed block to the next"),
    "l_s": Meaning("ls", "tokens of a block that is selected whole"),
    "n_b": Meaning("nb", "blocks that are selected for each query"),
    "s": Meaning("s", "share of the tiles that is kept"),
    "R": Meaning("devices", "devices that share the work"),
    "L": Meaning("layers", "layers of the stack"),
    "L_w": Meaning("windowed", "layers of the stack that see a window alone"),
    "n_page": Meaning("page", "tokens of a page of the cache"),
    "C_kv": Meaning("", "room for the cache of keys and values", "bytes"),
    "F": Meaning("", "matrix FLOP of one device in a second", "FLOP/s"),
    "B_link": Meaning("", "bytes that a device receives over its links in a second", "B/s"),
    "n_s": Meaning("splits", "parts that the keys are cut into, each with CTAs of its own"),
    "b": Meaning("", "bytes an element"),
    "b_kv": Meaning("", "bytes an element of K and V"),
    "b_s": Meaning("", "bytes an element of the scores S"),
    "b_p": Meaning("", "bytes an element of the probabilities P"),
    "b_l": Meaning("", "bytes an element of the row statistics m and l"),
    "b_acc": Meaning("", "bytes an element of an accumulator in registers"),
    "b_part": Meaning("", "bytes an element of the partial results of a split"),
    "m_I": Meaning("", "rows of one matrix instruction"),
    "n_I": Meaning("", "columns of one matrix instruction, at most"),
    "I_m": Meaning("", "FLOP that the matrix pipes do while one byte crosses from the L2 into the SMs", "FLOP/B"),
    "b_i": Meaning("", "bytes an element of the indexer's queries and keys"),
    "b_h": Meaning("", "bytes an element of the state H of a recurrence"),
}
"""Every symbol of the engine, in reading order."""

_RATIONAL = frozenset(name for name in MEANINGS if name in ("b", "s") or name.startswith(("b_", "I_")))
MAY_BE_ZERO = frozenset({"W_l", "W_r", "N_s", "N_g", "L_w"})
"""Sizes of a mask, and layers under it, that may be none at all."""


FRACTIONS = frozenset({"s"})
"""Symbols that are at most 1; every other one is at least 1."""


def is_fraction(symbol: sp.Symbol) -> bool:
    """Whether *symbol* is a share of something, such as a block density."""
    return symbol.name in FRACTIONS


def symbol(name: str) -> sp.Symbol:
    """The symbol *name*, positive; an integer unless it is a width in bytes (fp4 has half a byte) or a share.

    Raises:
        KeyError: *name* has no meaning in ``MEANINGS``.
    """
    if name not in MEANINGS:
        raise KeyError(f"{name} has no meaning in derive.symbols.MEANINGS")
    if name in MAY_BE_ZERO:
        return sp.Symbol(name, nonnegative=True, integer=True)
    return sp.Symbol(name, positive=True) if name in _RATIONAL else sp.Symbol(name, positive=True, integer=True)


def dummy(name: str) -> sp.Symbol:
    """A bound variable of a sum, or a row or key position: an integer from zero up."""
    return sp.Symbol(name, nonnegative=True, integer=True)


N_q, N_k = symbol("N_q"), symbol("N_k")
N = sp.Symbol("N", positive=True, integer=True)
"""Queries and keys a head, where both are one length; printed, and read back, in their place."""
d, d_v = symbol("d"), symbol("d_v")
h, h_k, B = symbol("h"), symbol("h_k"), symbol("B")
d_c, d_r = symbol("d_c"), symbol("d_r")
M_reg, M_L2 = symbol("M_reg"), symbol("M_L2")
M, B_r, B_c, B_d = symbol("M"), symbol("B_r"), symbol("B_c"), symbol("B_d")
C, C_L2, n_L2 = symbol("C"), symbol("C_L2"), symbol("n_L2")
b, b_kv, b_s, b_p, b_l, b_acc = (symbol(name) for name in ("b", "b_kv", "b_s", "b_p", "b_l", "b_acc"))
m_I, n_I = symbol("m_I"), symbol("n_I")
b_h, I_m = symbol("b_h"), symbol("I_m")
h_i, d_i, b_i = symbol("h_i"), symbol("d_i"), symbol("b_i")
l_c, d_s, l_s, n_b = symbol("l_c"), symbol("d_s"), symbol("l_s"), symbol("n_b")
W, W_l, W_r, C_k, N_p = (symbol(name) for name in ("W", "W_l", "W_r", "C_k", "N_p"))
C_b, C_t = symbol("C_b"), symbol("C_t")
N_s, N_g, n_d, n_t, s = (symbol(name) for name in ("N_s", "N_g", "n_d", "n_t", "s"))
L, L_w, C_kv = symbol("L"), symbol("L_w"), symbol("C_kv")
n_page = symbol("n_page")
R, F, B_link = symbol("R"), symbol("F"), symbol("B_link")
n_s, b_part = symbol("n_s"), symbol("b_part")
ROW = dummy("q")
"""The query position a mask's bounds are written in."""
COPY = dummy("c")
"""The number of one of several like intervals of a mask."""

"""Each mask once more, pair by pair, from its words: what a reader of the paper would write down, with no interval in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from derive.masks import Pattern

Sizes = Mapping[str, int]


class Pair(NamedTuple):
    """A query, the position of its own key, a key, and the sizes of the mask."""

    q: int
    own: int
    k: int
    n: Sizes


SEES: dict[str, Callable[[Pair], bool]] = {
    "full": lambda p: p.k >= 0,
    "causal": lambda p: p.k <= p.own,
    "window": lambda p: p.own - p.n["W"] < p.k <= p.own,
    "window left right": lambda p: p.own - p.n["W_l"] <= p.k <= p.own + p.n["W_r"],
    "chunk": lambda p: p.k // p.n["C_k"] == p.own // p.n["C_k"] and p.k <= p.own,
    "prefix": lambda p: p.k < p.n["N_p"] or p.k <= p.own,
    "sinks": lambda p: p.k <= p.own and (p.k < p.n["N_s"] or p.own - p.k < p.n["W"]),
    "global-local": lambda p: min(p.own, p.k) < p.n["N_g"] or p.own - p.n["W_l"] <= p.k <= p.own + p.n["W_r"],
    "dilated": lambda p: p.k <= p.own and (p.own - p.k) % p.n["n_d"] == 0 and p.own - p.k < p.n["n_d"] * p.n["W"],
}
"""Whether the query sees the key."""


def seen(pattern: Pattern, rows: int, columns: int, sizes: Sizes) -> npt.NDArray[np.bool_]:
    """Which keys each query sees, shape (rows, columns)."""
    if pattern.numbers:
        document = [n for n, length in enumerate(pattern.numbers) for _ in range(length)]
        same = np.equal.outer(document, document)
        return np.tril(same) if pattern.name == "docs" else same
    name = pattern.name.removesuffix("-tl")
    offset = 0 if pattern.name.endswith("-tl") else columns - rows
    sees = SEES["window left right" if name == "window" and "left" in pattern.given else name]
    return np.array([[sees(Pair(q, q + offset, k, sizes)) for k in range(columns)] for q in range(rows)], bool)

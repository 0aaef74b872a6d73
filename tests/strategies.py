"""Random shapes, tiles, masks and schedules, small enough to walk tile by tile."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from hypothesis import reject
from hypothesis import strategies as st
from sympy import divisors

from derive.attention import names as variant_names
from derive.attention import variant
from derive.einsum import Map
from derive.errors import BadValueError, PreconditionError
from derive.exact import value
from derive.masks import patterns
from derive.rewrite import Derivation
from derive.symbols import MEANINGS, N_k, N_q
from outputs.testing import strategies as published
from rules.derivations import names as schedule_names
from rules.derivations import plan

extents = st.integers(1, 20)
tiles = st.integers(1, 8)


def applies(name: str, schedule: str, mask: str = "full") -> bool:
    """Whether every rule of *schedule* applies to a variant, whose mask may be its own."""
    return variant(name).takes(mask) and published.applies(name, schedule, mask)


PAIRS = tuple(pair for pair in product(variant_names(), schedule_names()) if applies(*pair))
"""Each variant with each schedule that fits it."""
FORWARD = tuple(n for n in schedule_names() if plan(n).direction == "forward" and applies("mha", n, "causal"))
"""Schedules of plain attention that take every mask."""
pairs = st.sampled_from(tuple(pair for pair in PAIRS if applies(*pair, "causal")))


def is_plain(name: str) -> bool:
    """Whether a variant is softmax(Q K^T) V under any mask, whatever its heads share: nothing else happens between the two."""
    if variant(name).own_mask is not None:
        return False
    graph = variant(name).graph()
    between = {e.map for e in graph.einsums if {"q", "k"} <= {i.name for i in e.space}}
    return between == {Map.MUL, Map.SOFTMAX} and all((name, schedule) in PAIRS for schedule in FORWARD)


ATTENTION = tuple(filter(is_plain, variant_names()))
variants = st.sampled_from(ATTENTION)
schedules = st.sampled_from(FORWARD)
"""Variants of plain attention, forward, and the schedules that fit all of them."""
INTERVALS = tuple(p.name for p in patterns() if (mask := p.mask(N_q, N_k)) is None or mask.is_one_interval)
"""Masks whose keys stand together: every schedule counts the tiles they leave."""
masks = published.masks().map(lambda pattern: pattern.name).filter(INTERVALS.__contains__)
LARGEST = dict.fromkeys(("N_q", "N_k"), 20) | dict.fromkeys(("d", "d_v", "d_c", "d_r", "d_i", "h_i"), 4)
LARGEST |= dict.fromkeys(("l_c", "l_s", "n_b"), 4) | {"h": 9, "h_k": 3, "B": 2, "d_s": 2, "n_page": 5}
LARGEST |= dict.fromkeys(("B_r", "B_c", "B_d"), 8)
MASK_SIZES = dict.fromkeys(sorted({name for pattern in patterns() for name in pattern.sizes}), 24)
"""The largest value of each symbol: of a size of a mask more than the keys there are."""


def by_symbol(largest: dict[str, int]) -> st.SearchStrategy[dict[str, int]]:
    """What projects that use this one draw by the keys a person types, with the names of the symbols."""
    names = {MEANINGS[name].key: name for name in largest}
    return published.shapes(**{key: largest[name] for key, name in names.items()}).map(
        lambda found: {names[key]: size for key, size in found.items()}
    )


def mask_sizes() -> st.SearchStrategy[dict[str, int]]:
    """A value for every size of every mask, from the least it may be to more than the keys there are."""
    return by_symbol(MASK_SIZES)


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, int]:
    """A value for every symbol of every variant and schedule; hk divides h, splits N_k, chunks N_q, and tiles nothing."""
    found = draw(by_symbol({**LARGEST, **MASK_SIZES}))
    queries, keys = found["N_q"], found["N_k"]
    parts = {"n_s": draw(st.sampled_from(divisors(keys))), "C_t": draw(st.sampled_from(divisors(queries)))}
    return {**found, **parts, "n_t": draw(st.integers(1, keys))}


@lru_cache(maxsize=512)
def derivation(variant_name: str, schedule: str, mask: str, order: str = "head", sawtooth: bool = False) -> Derivation:
    """The derivation of a schedule for a variant, all symbols kept; an example is rejected whose mask forbids it."""
    chosen = plan(schedule).ordered(order=order, sawtooth=sawtooth)
    found = variant(variant_name)
    try:
        return chosen.derive(found.graph() if found.own_mask else found.graph(mask))
    except (PreconditionError, BadValueError):  # of the schedule, or of the variant
        reject()


def fitted(variant_name: str, numbers: dict[str, int]) -> dict[str, int]:
    """*numbers* with each size that another must divide made a multiple of it, four times at most, and none too large."""
    found = dict(numbers)
    for divisor, dividend in variant(variant_name).divides:
        found[dividend.name] = found[divisor.name] * (1 + found[dividend.name] % 4)
    for part, whole in variant(variant_name).at_most:
        found[part.name] = min(found[part.name], int(value(whole, found)))
    return found

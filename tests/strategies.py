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
from derive.symbols import MAY_BE_ZERO, N_k, N_q
from outputs.testing import strategies as published
from rules.derivations import names as schedule_names
from rules.derivations import plan

extents = st.integers(1, 20)
tiles = st.integers(1, 8)
widths = st.integers(1, 4)


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
masks = st.sampled_from(tuple(dict.fromkeys(INTERVALS)))


def mask_sizes() -> st.SearchStrategy[dict[str, int]]:
    """A value for every size of every mask, from the least it may be to more than the keys there are."""
    sizes = {name for pattern in patterns() for name in pattern.sizes}
    return st.fixed_dictionaries({name: st.integers(int(name not in MAY_BE_ZERO), 24) for name in sorted(sizes)})


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, int]:
    """A value for every symbol of every variant and schedule; hk divides h, splits N_k, chunks N_q, and tiles nothing."""
    h_k, keys, queries = draw(st.integers(1, 3)), draw(extents), draw(extents)
    return {
        "N_q": queries,
        "C_t": draw(st.sampled_from(divisors(queries))),
        "N_k": keys,
        "n_s": draw(st.sampled_from(divisors(keys))),
        "n_t": draw(st.integers(1, keys)),
        "d": draw(widths),
        "d_v": draw(widths),
        "d_c": draw(widths),
        "d_r": draw(widths),
        "d_i": draw(widths),
        "h_i": draw(widths),
        "d_s": draw(st.integers(1, 2)),
        "l_c": draw(widths),
        "l_s": draw(widths),
        "n_b": draw(widths),
        "n_page": draw(st.integers(1, 5)),
        "h_k": h_k,
        "h": h_k * draw(st.integers(1, 3)),
        "B": draw(st.integers(1, 2)),
        "B_r": draw(tiles),
        "B_c": draw(tiles),
        "B_d": draw(tiles),
        **draw(mask_sizes()),
    }


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

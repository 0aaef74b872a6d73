"""Random shapes, tiles, masks and schedules, small enough to walk tile by tile."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from hypothesis import strategies as st

from derive.attention import names as variant_names
from derive.attention import variant
from derive.rewrite import Derivation
from derive.variant import MASKS
from rules.derivations import names as schedule_names
from rules.derivations import plan

extents = st.integers(1, 20)
tiles = st.integers(1, 8)
widths = st.integers(1, 4)
masks = st.sampled_from(MASKS)
FORWARD, BACKWARD = (
    (
        tuple(n for n in variant_names() if variant(n).direction == direction),
        tuple(n for n in schedule_names() if plan(n).direction == direction),
    )
    for direction in ("forward", "backward")
)
"""Variants and schedules by direction: a backward schedule needs the forward pass to have run."""
variants = st.sampled_from(FORWARD[0])
schedules = st.sampled_from(FORWARD[1])
pairs = st.sampled_from([*product(*FORWARD), *product(*BACKWARD)])
"""A variant and a schedule that fits it."""


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, int]:
    """A value for every symbol of every variant and schedule; hk divides h, tiles need not divide anything."""
    h_k = draw(st.integers(1, 3))
    return {
        "N_q": draw(extents),
        "N_k": draw(extents),
        "d": draw(widths),
        "d_v": draw(widths),
        "h_k": h_k,
        "h": h_k * draw(st.integers(1, 3)),
        "B": draw(st.integers(1, 2)),
        "B_r": draw(tiles),
        "B_c": draw(tiles),
        "B_d": draw(tiles),
    }


@lru_cache(maxsize=512)
def derivation(variant_name: str, schedule: str, mask: str, order: str = "head", sawtooth: bool = False) -> Derivation:
    """The derivation of a schedule for a variant, all symbols kept."""
    chosen = plan(schedule).ordered(order=order, sawtooth=sawtooth)
    return chosen.derive(variant(variant_name).graph(mask))

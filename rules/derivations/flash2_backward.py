"""The backward pass with the row sums in a kernel of their own: O is read once, not once a key tile."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_c, B_r
from rules.derivations import flash1_backward
from rules.plan import Plan
from rules.schedule import fuse_pairs, in_memory, keep_resident, launch, skip_masked, tile

NEST = (
    tile.KEYS,
    WherePossible(tile.SHARED_HEADS),
    WherePossible(tile.QUERIES),
    WherePossible(launch.ROWS),
    WherePossible(launch.HEADS),
    WherePossible(skip_masked.RULE, if_legal=True),
)
"""Key tiles outside, row tiles inside."""
KEYS_OUTSIDE = (*NEST, in_memory.RULE)
"""The same, and what is summed over the keys in memory from the start."""

PLAN = Plan(
    name="flash2-backward",
    says="two kernels, D = rowsum(dO O), then keys outside and queries inside: Q, dO and dQ move once a key tile, O once",
    reference="Dao 2023, arXiv:2307.08691, algorithm 2",
    algebra=flash1_backward.ALGEBRA,
    schedule=(fuse_pairs.PAIRS, *KEYS_OUTSIDE, WherePossible(keep_resident.FORWARD)),
    tiles={B_r: sp.Integer(64), B_c: sp.Integer(128)},
    direction="backward",
    after="flash2",
)

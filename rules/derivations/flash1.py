"""FlashAttention-1: keys outside, queries inside; O, l and m live in memory; tiles as Algorithm 1 takes them from M."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_c, B_r, M, d
from rules.plan import Plan
from rules.schedule import fuse_pairs, in_memory, interchange, keep_resident, launch, skip_masked, tile
from rules.streamed import STREAMED

PLAN = Plan(
    name="flash1",
    says="one kernel a head, keys outside and queries inside: K and V are read once, Q and the partial O once a key tile",
    reference="Dao et al. 2022, arXiv:2205.14135, algorithm 1",
    algebra=STREAMED,
    schedule=(
        fuse_pairs.PAIRS,
        tile.QUERIES,
        tile.KEYS,
        interchange.KEYS_OUTSIDE,
        launch.HEADS,
        WherePossible(skip_masked.RULE),
        in_memory.RULE,
        WherePossible(keep_resident.FORWARD),
    ),
    tiles={B_c: sp.ceiling(M / (4 * d)), B_r: sp.Min(sp.ceiling(M / (4 * d)), d)},
)

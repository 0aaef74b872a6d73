"""FlashAttention-2: query tiles on the grid, keys streamed inside; O is written once."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_c, B_r
from rules.plan import Plan
from rules.schedule import fuse_pairs, keep_resident, launch, skip_masked, tile
from rules.streamed import STREAMED

PLAN = Plan(
    name="flash2",
    says="one kernel, a CTA for each query tile that streams all of K and V: O is written once, K and V are read T_r times",
    reference="Dao 2023, arXiv:2307.08691, section 3",
    algebra=STREAMED,
    schedule=(
        fuse_pairs.PAIRS,
        tile.QUERIES,
        launch.QUERIES,
        tile.KEYS,
        launch.HEADS,
        WherePossible(skip_masked.RULE),
        WherePossible(keep_resident.FORWARD),
    ),
    tiles={B_r: sp.Integer(128), B_c: sp.Integer(128)},
)

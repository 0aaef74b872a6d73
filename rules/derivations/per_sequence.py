"""A shared prefix read by each sequence for itself: tiles hold the query heads of one sequence."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_c, B_r
from rules.algebra import online_softmax
from rules.plan import Plan
from rules.schedule import fuse_streams, keep_resident, launch, pack_heads, skip_masked, tile

BEFORE_PACKING = (
    fuse_streams.RULE,
    fuse_streams.RULE,
    fuse_streams.RULE,
    WherePossible(tile.QUERIES),
    WherePossible(launch.QUERIES),
    tile.PREFIX,
    tile.KEYS,
    WherePossible(launch.HEADS),
    WherePossible(skip_masked.RULE),
)
PLAN = Plan(
    name="per-sequence",
    says="three kernels: prefix, own keys, merge; each sequence's CTAs read the prefix again",
    reference="Kwon et al. 2023, PagedAttention, arXiv:2309.06180, section 4.4 (shared prefix)",
    algebra=(WherePossible(online_softmax.RULE),),
    schedule=(
        *BEFORE_PACKING,
        WherePossible(pack_heads.GROUP),
        WherePossible(keep_resident.FORWARD),
    ),
    tiles={B_r: sp.Integer(128), B_c: sp.Integer(128)},
)

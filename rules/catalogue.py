"""Every rule, in reading order: the contract test runs over this tuple and over nothing else."""

from rules.algebra import defer_division, online_softmax, share_heads, split_softmax
from rules.schedule import (
    fuse,
    in_memory,
    interchange,
    keep_resident,
    launch,
    pack_heads,
    skip_masked,
    tile,
    tile_product,
)

ALGEBRA = (split_softmax.RULE, defer_division.RULE, online_softmax.RULE, share_heads.RULE)
SCHEDULE = (
    *fuse.RULES,
    *tile.RULES,
    tile_product.RULE,
    *launch.RULES,
    *interchange.RULES,
    skip_masked.RULE,
    pack_heads.RULE,
    in_memory.RULE,
    *keep_resident.RULES,
)
ALL = (*ALGEBRA, *SCHEDULE)

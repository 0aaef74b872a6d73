"""Every rule, in reading order: the contract test runs over this tuple and over nothing else."""

from rules.algebra import (
    defer_division,
    delay_division,
    distribute,
    online_softmax,
    reassociate,
    recompute,
    regroup,
    row_sum,
    share_heads,
    split_softmax,
    split_softmax_gradient,
    use_log_sum_exp,
)
from rules.schedule import (
    fuse,
    fuse_pairs,
    in_memory,
    interchange,
    keep_resident,
    launch,
    pack_heads,
    skip_masked,
    tile,
    tile_product,
)

ALGEBRA = (
    split_softmax.RULE,
    delay_division.RULE,
    distribute.RULE,
    reassociate.RULE,
    defer_division.RULE,
    online_softmax.RULE,
    share_heads.RULE,
    *recompute.RULES,
    use_log_sum_exp.RULE,
    split_softmax_gradient.RULE,
    regroup.RULE,
    row_sum.RULE,
)
SCHEDULE = (
    *fuse.RULES,
    *fuse_pairs.RULES,
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

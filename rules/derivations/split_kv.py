"""Flash-Decoding: the keys in n_s parts, each with CTAs of its own; a second kernel merges their partial results."""

from dataclasses import replace

from derive.rewrite import WherePossible
from derive.symbols import N_k, n_s
from rules.algebra import (
    defer_division,
    online_softmax,
    own_maximum,
    read_in_each_part,
    share_heads,
    split_keys,
    split_softmax,
)
from rules.derivations import flash2
from rules.schedule import fuse_parts, keep_resident, launch, pack_heads, skip_masked, tile

PLAN = replace(
    flash2.PLAN,
    name="split-kv",
    says="two kernels: CTAs for each part of the keys leave (m, l, U) in memory, and a second kernel merges the parts",
    reference="Dao et al. 2023, Flash-Decoding, crfm.stanford.edu/2023/10/12/flashdecoding.html",
    algebra=(
        WherePossible(share_heads.RULE),
        split_softmax.RULE,
        defer_division.RULE,
        split_keys.RULE,
        own_maximum.RULE,
        WherePossible(online_softmax.RULE),
        WherePossible(read_in_each_part.RULE),
    ),
    schedule=(
        WherePossible(fuse_parts.RULE),
        WherePossible(tile.QUERIES),
        WherePossible(launch.QUERIES),
        tile.KEYS,
        WherePossible(launch.HEADS),
        WherePossible(skip_masked.RULE),
        WherePossible(tile.PARTS),
        WherePossible(pack_heads.RULE),
        WherePossible(keep_resident.FORWARD),
    ),
    divides=((n_s, N_k),),
)

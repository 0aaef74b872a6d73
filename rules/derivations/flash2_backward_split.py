"""FlashAttention-2's deterministic backward pass: a workspace for dQ in n_s copies, one for each part of the keys.

A part's first key tile writes its copy, each further one reads it and writes it. The published kernel adds to zeros instead,
which its caller writes: n_s copies more are written, and as many more are read.
"""

from dataclasses import replace

from derive.rewrite import WherePossible
from derive.symbols import N_k, n_s
from rules.algebra import split_sums
from rules.derivations import flash1_backward, flash2_backward
from rules.schedule import fuse_pairs, fuse_parts, keep_resident, launch, tile

PLAN = replace(
    flash2_backward.PLAN,
    name="flash2-backward-split",
    says="three kernels: D; CTAs for each part of the keys, each with its own copy of dQ; the copies added up in a fixed order",
    reference="Dao-AILab/flash-attention, flash_bwd_launch_template.h (deterministic=True)",
    algebra=(*flash1_backward.ALGEBRA, split_sums.RULE),
    schedule=(
        fuse_pairs.PAIRS,
        WherePossible(fuse_parts.MERGES),
        *flash2_backward.NEST,
        WherePossible(tile.PARTS_OF_ROWS),
        launch.PARTS,
        WherePossible(keep_resident.FORWARD),
    ),
    divides=((n_s, N_k),),
)

"""FlashAttention-2's backward pass as it is launched: a CTA for each key tile, dQ added up in memory by atomic additions."""

from dataclasses import replace

from derive.rewrite import WherePossible
from rules.derivations import flash2_backward
from rules.schedule import add_across_ctas, finish_after, fuse_pairs, keep_resident

PLAN = replace(
    flash2_backward.PLAN,
    name="flash2-backward-atomic",
    says="three kernels: D; a CTA for each key tile that adds its share of dQ to memory atomically; dQ scaled and converted",
    reference="Dao 2023, arXiv:2307.08691, section 3.2",
    schedule=(
        fuse_pairs.PAIRS,
        WherePossible(finish_after.RULE),
        *flash2_backward.KEYS_OUTSIDE,
        add_across_ctas.ATOMIC,
        WherePossible(keep_resident.FORWARD),
    ),
)

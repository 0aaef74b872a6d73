"""FlashAttention-1's backward pass: keys outside, queries inside; dK and dV stay on chip, dQ lives in memory."""

from derive.rewrite import WherePossible
from rules.algebra import distribute, recompute, regroup, row_sum, split_softmax_gradient, use_log_sum_exp
from rules.derivations import flash1
from rules.plan import Plan
from rules.schedule import fuse, in_memory, keep_resident, launch, skip_masked, tile

ALGEBRA = (
    WherePossible(recompute.SCORES),
    WherePossible(recompute.OPERANDS),
    WherePossible(use_log_sum_exp.RULE),
    WherePossible(split_softmax_gradient.RULE),
    WherePossible(distribute.RULE),
    WherePossible(regroup.RULE),
    WherePossible(row_sum.RULE),
)
PLAN = Plan(
    name="flash1-backward",
    says="one kernel a head, keys outside and queries inside: K, V, dK and dV move once, Q, O, dO and dQ once a key tile",
    reference="Dao et al. 2022, arXiv:2205.14135, algorithm 4",
    algebra=ALGEBRA,
    schedule=(
        fuse.ALL,
        tile.KEYS,
        WherePossible(tile.SHARED_HEADS),
        tile.QUERIES,
        WherePossible(launch.HEADS),
        WherePossible(skip_masked.RULE, if_legal=True),
        in_memory.RULE,
        WherePossible(keep_resident.FORWARD),
    ),
    tiles=flash1.PLAN.tiles,
    direction="backward",
    after="flash1",
)

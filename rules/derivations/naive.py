"""Naive attention: matmul, softmax, matmul; the scores cross memory four times."""

from derive.rewrite import WherePossible
from rules.algebra import split_softmax
from rules.plan import Plan
from rules.schedule import fuse, fuse_pairs, keep_resident

PLAN = Plan(
    name="naive",
    says="S = Q K^T, P = softmax(S), O = P V, a kernel each: the scores cross memory four times, twice more a pass between",
    reference="Dao et al. 2022, arXiv:2205.14135, algorithm 0",
    algebra=(WherePossible(split_softmax.RULE),),
    schedule=(
        WherePossible(fuse.PROLOGUE),
        WherePossible(fuse_pairs.ACCUMULATORS),
        WherePossible(fuse_pairs.SOFTMAX),
        WherePossible(keep_resident.FORWARD),
    ),
)

"""Naive attention: matmul, softmax, matmul; the scores cross memory four times."""

from derive.rewrite import WherePossible
from rules.algebra import split_softmax
from rules.plan import Plan
from rules.schedule import fuse, keep_resident

PLAN = Plan(
    name="naive",
    says="three kernels, S = Q K^T, P = softmax(S), O = P V; the scores cross memory four times",
    reference="Dao et al. 2022, arXiv:2205.14135, algorithm 0",
    algebra=(WherePossible(split_softmax.RULE),),
    schedule=(
        WherePossible(fuse.PROLOGUE),
        WherePossible(fuse.BETWEEN_PRODUCTS),
        WherePossible(keep_resident.FORWARD),
    ),
)

"""Naive backward pass: four matrix products and the softmax's gradient, P read from memory, dP and dS through it."""

from derive.rewrite import WherePossible
from rules.algebra import recompute, split_softmax_gradient
from rules.plan import Plan
from rules.schedule import fuse, keep_resident

PLAN = Plan(
    name="naive-backward",
    says="five kernels for dP, dV, dS, dQ and dK; P is saved and read, dP and dS cross memory: 7 N_q N_k elements a head",
    reference="Dao et al. 2022, arXiv:2205.14135, algorithm 3",
    algebra=(WherePossible(recompute.OPERANDS), WherePossible(split_softmax_gradient.RULE)),
    schedule=(
        WherePossible(fuse.PROLOGUE),
        WherePossible(fuse.EPILOGUE),
        WherePossible(fuse.BETWEEN_PRODUCTS),
        WherePossible(keep_resident.FORWARD),
    ),
    direction="backward",
    after="naive",
)

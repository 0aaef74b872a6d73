"""Attention with dropout on the probabilities: a mask made from a seed, which crosses memory where the schedule lets it."""

from dataclasses import replace

import sympy as sp

from derive.attention import mha

VARIANT = replace(
    mha.VARIANT,
    name="dropout",
    says="attention with dropout on P; unfused, its mask crosses memory at 1 byte a pair, fused it is made from the seed",
    text="""
        Qs[b,h,q,d] = Q[b,h,q,d] * c
        S[b,h,q,k]  = sum[d] Qs[b,h,q,d] * K[b,h,k,d]
        P[b,h,q,k]  = softmax(S[b,h,q,k])
        D[b,h,q,k]  = keep(p)
        Y[b,h,q,k]  = P[b,h,q,k] * D[b,h,q,k]
        O[b,h,q,e]  = sum[k] Y[b,h,q,k] * V[b,h,k,e]
    """,
    reference="Dao et al. 2022, arXiv:2205.14135, algorithm 2",
    widths={"D": sp.Integer(1)},
)

"""Differential attention: the difference of two softmaxes, each over half of the head's queries and keys."""

from derive.symbols import B, N_k, N_q, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="differential",
    says="differential attention, (softmax(Q1 K1^T) - lambda softmax(Q2 K2^T)) V; d is the width of each half",
    text="""
        Qs1[b,h,q,d] = Q1[b,h,q,d] * c
        S1[b,h,q,k]  = sum[d] Qs1[b,h,q,d] * K1[b,h,k,d]
        Qs2[b,h,q,d] = Q2[b,h,q,d] * c
        S2[b,h,q,k]  = sum[d] Qs2[b,h,q,d] * K2[b,h,k,d]
        P1[b,h,q,k]  = softmax(S1[b,h,q,k])
        P2[b,h,q,k]  = softmax(S2[b,h,q,k])
        L[b,h,q,k]   = P2[b,h,q,k] * lambda
        A[b,h,q,k]   = P1[b,h,q,k] - L[b,h,q,k]
        O[b,h,q,e]   = sum[k] A[b,h,q,k] * V[b,h,k,e]
    """,
    extents={"b": B, "h": h, "q": N_q, "k": N_k, "d": d, "e": d_v},
    reference="Ye et al. 2024, arXiv:2410.05258, section 2.1",
)

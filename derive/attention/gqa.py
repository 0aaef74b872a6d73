"""Grouped-query attention: the h / hk query heads of a group share one key/value head."""

from derive.symbols import B, N_k, N_q, d, d_v, h, h_k
from derive.variant import Variant

VARIANT = Variant(
    name="gqa",
    says="grouped-query attention: h query heads share hk key/value heads",
    text="""
        Qs[b,g,r,q,d] = Q[b,g,r,q,d] * c
        S[b,g,r,q,k]  = sum[d] Qs[b,g,r,q,d] * K[b,g,k,d]
        P[b,g,r,q,k]  = softmax(S[b,g,r,q,k])
        O[b,g,r,q,e]  = sum[k] P[b,g,r,q,k] * V[b,g,k,e]
    """,
    extents={"b": B, "g": h_k, "r": h / h_k, "q": N_q, "k": N_k, "d": d, "e": d_v},
    divides=((h_k, h),),
    reference="Ainslie et al. 2023, arXiv:2305.13245",
)

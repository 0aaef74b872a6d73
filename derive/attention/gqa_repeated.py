"""Grouped-query attention as frameworks without native support run it: K and V copied once for each query head."""

from derive.symbols import B, N_k, N_q, d, d_v, h, h_k
from derive.variant import Variant

VARIANT = Variant(
    name="gqa-repeated",
    says="grouped-query attention over copies of K and V repeated for every query head (repeat_kv)",
    text="""
        K_rep[b,g,r,k,d] = K[b,g,k,d]
        V_rep[b,g,r,k,e] = V[b,g,k,e]
        Qs[b,g,r,q,d] = Q[b,g,r,q,d] * c
        S[b,g,r,q,k]  = sum[d] Qs[b,g,r,q,d] * K_rep[b,g,r,k,d]
        P[b,g,r,q,k]  = softmax(S[b,g,r,q,k])
        O[b,g,r,q,e]  = sum[k] P[b,g,r,q,k] * V_rep[b,g,r,k,e]
    """,
    extents={"b": B, "g": h_k, "r": h / h_k, "q": N_q, "k": N_k, "d": d, "e": d_v},
    divides=((h_k, h),),
    reference="Ainslie et al. 2023, arXiv:2305.13245, section 2.2",
)

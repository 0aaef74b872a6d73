"""Multi-query attention: all query heads share one key/value head."""

from derive.symbols import B, N_k, N_q, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="mqa",
    says="multi-query attention: h query heads share one key/value head",
    text="""
        Qs[b,r,q,d] = Q[b,r,q,d] * c
        S[b,r,q,k]  = sum[d] Qs[b,r,q,d] * K[b,k,d]
        P[b,r,q,k]  = softmax(S[b,r,q,k])
        O[b,r,q,e]  = sum[k] P[b,r,q,k] * V[b,k,e]
    """,
    extents={"b": B, "r": h, "q": N_q, "k": N_k, "d": d, "e": d_v},
    reference="Shazeer 2019, arXiv:1911.02150",
)

"""Multi-head attention: every query head has a key/value head of its own."""

from derive.symbols import B, N_k, N_q, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="mha",
    says="multi-head attention, softmax(Q K^T / sqrt(d)) V",
    text="""
        Qs[b,h,q,d] = Q[b,h,q,d] * c
        S[b,h,q,k]  = sum[d] Qs[b,h,q,d] * K[b,h,k,d]
        P[b,h,q,k]  = softmax(S[b,h,q,k])
        O[b,h,q,e]  = sum[k] P[b,h,q,k] * V[b,h,k,e]
    """,
    extents={"b": B, "h": h, "q": N_q, "k": N_k, "d": d, "e": d_v},
    reference="Vaswani et al. 2017, arXiv:1706.03762, section 3.2",
)

"""Attention over the keys that are selected for each query: the core alone, its positions given."""

import sympy as sp

from derive.symbols import B, N_k, N_q, b_kv, d, d_v, h, h_k, n_t
from derive.variant import Variant

POSITION_BYTES = sp.Integer(4)
"""Positions are 32-bit integers."""

VARIANT = Variant(
    name="topk",
    says="grouped-query attention over topk selected keys: the query heads of a group share the positions T, which are given",
    text="""
        K_sel[b,g,q,k,d] = gather(K[b,g,j,d], T[b,g,q,k])
        V_sel[b,g,q,k,e] = gather(V[b,g,j,e], T[b,g,q,k])
        Qs[b,g,r,q,d] = Q[b,g,r,q,d] * c
        S[b,g,r,q,k]  = sum[d] Qs[b,g,r,q,d] * K_sel[b,g,q,k,d]
        P[b,g,r,q,k]  = softmax(S[b,g,r,q,k])
        O[b,g,r,q,e]  = sum[k] P[b,g,r,q,k] * V_sel[b,g,q,k,e]
    """,
    extents={"b": B, "g": h_k, "r": h / h_k, "q": N_q, "j": N_k, "k": n_t, "d": d, "e": d_v},
    divides=((h_k, h),),
    at_most=((n_t, N_k),),
    reference="Yuan et al. 2025, arXiv:2502.11089, section 3.4 (blockwise selection within a group)",
    widths={"T": POSITION_BYTES, "K_sel": b_kv, "V_sel": b_kv},
    schedules=("naive", "per-query"),
)

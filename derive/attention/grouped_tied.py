"""Grouped-tied attention (GTA): the values are also the keys' unrotated half, so the cache holds one tensor, not two."""

from derive.symbols import B, N_k, N_q, b_kv, d, h, h_k
from derive.variant import Variant

VARIANT = Variant(
    name="grouped-tied",
    says="grouped-tied attention: V = [V1, V2] of width 2 d; V1 is also half of the key, the other half one rotary key for all",
    text="""
        Ns[b,g,r,q,d]  = Q[b,g,r,q,d] * c
        S_nope[b,g,r,q,k] = sum[d] Ns[b,g,r,q,d] * V1[b,g,k,d]
        Rs[b,g,r,q,w]  = Q_rope[b,g,r,q,w] * c
        S_rope[b,g,r,q,k] = sum[w] Rs[b,g,r,q,w] * K_rope[b,k,w]
        S[b,g,r,q,k]   = S_nope[b,g,r,q,k] + S_rope[b,g,r,q,k]
        P[b,g,r,q,k]   = softmax(S[b,g,r,q,k])
        O1[b,g,r,q,d]  = sum[k] P[b,g,r,q,k] * V1[b,g,k,d]
        O2[b,g,r,q,w]  = sum[k] P[b,g,r,q,k] * V2[b,g,k,w]
    """,
    extents={"b": B, "g": h_k, "r": h / h_k, "q": N_q, "k": N_k, "d": d, "w": d},
    divides=((h_k, h),),
    outputs=("O1", "O2"),
    reference="Zadouri et al. 2025, arXiv:2505.21487, section 3.2",
    widths={"V1": b_kv, "V2": b_kv, "K_rope": b_kv},
    schedules=("naive", "flash2", "flash2-packed"),
)

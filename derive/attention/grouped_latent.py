"""Grouped latent attention (GLA): h query heads in groups that each share a latent, read once as key and as value."""

from derive.symbols import B, N_k, N_q, b_kv, d_c, d_r, h, h_k
from derive.variant import Variant

VARIANT = Variant(
    name="grouped-latent",
    says="grouped latent attention: hk groups of query heads, a latent of width dc each; one rotary key for all",
    text="""
        Ns[b,g,r,q,c]  = Q[b,g,r,q,c] * c
        S_nope[b,g,r,q,k] = sum[c] Ns[b,g,r,q,c] * C[b,g,k,c]
        Rs[b,g,r,q,w]  = Q_rope[b,g,r,q,w] * c
        S_rope[b,g,r,q,k] = sum[w] Rs[b,g,r,q,w] * K_rope[b,k,w]
        S[b,g,r,q,k]   = S_nope[b,g,r,q,k] + S_rope[b,g,r,q,k]
        P[b,g,r,q,k]   = softmax(S[b,g,r,q,k])
        O[b,g,r,q,c]   = sum[k] P[b,g,r,q,k] * C[b,g,k,c]
    """,
    extents={"b": B, "g": h_k, "r": h / h_k, "q": N_q, "k": N_k, "c": d_c, "w": d_r},
    divides=((h_k, h),),
    reference="Zadouri et al. 2025, arXiv:2505.21487, section 3.3",
    widths={"C": b_kv, "K_rope": b_kv},
    schedules=("naive", "flash2", "flash2-packed"),
)

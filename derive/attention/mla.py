"""Multi-head latent attention: keys and values are expanded from one latent a token, with a rotary key beside it."""

from derive.symbols import B, N_k, N_q, b_kv, d, d_c, d_r, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="mla",
    says="multi-head latent attention: each head's keys and values are made of a latent of width dc; dr rotary channels beside",
    text="""
        K[b,h,k,d]   = sum[c] W_K[h,d,c] * C[b,k,c]
        V[b,h,k,e]   = sum[c] W_V[h,e,c] * C[b,k,c]
        Ns[b,h,q,d]  = Q[b,h,q,d] * c
        S_nope[b,h,q,k] = sum[d] Ns[b,h,q,d] * K[b,h,k,d]
        Rs[b,h,q,r]  = Q_rope[b,h,q,r] * c
        S_rope[b,h,q,k] = sum[r] Rs[b,h,q,r] * K_rope[b,k,r]
        S[b,h,q,k]   = S_nope[b,h,q,k] + S_rope[b,h,q,k]
        P[b,h,q,k]   = softmax(S[b,h,q,k])
        O[b,h,q,e]   = sum[k] P[b,h,q,k] * V[b,h,k,e]
    """,
    extents={"b": B, "h": h, "q": N_q, "k": N_k, "d": d, "e": d_v, "c": d_c, "r": d_r},
    reference="DeepSeek-AI 2024, arXiv:2405.04434, section 2.1",
    widths={"C": b_kv, "K_rope": b_kv},
    schedules=("flash2", "absorbed"),
)

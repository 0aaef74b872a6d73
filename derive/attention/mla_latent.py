"""What an absorbed MLA kernel sees: all heads share one latent a token, which is the key and, read once, the value too."""

from derive.symbols import B, N_k, N_q, b_kv, d_c, d_r, h
from derive.variant import Variant

VARIANT = Variant(
    name="mla-latent",
    says="absorbed latent attention: queries of width dc + dr against one latent C and rotary key a token; V is a view of C",
    text="""
        Ns[b,r,q,c]  = Q[b,r,q,c] * c
        S_nope[b,r,q,k] = sum[c] Ns[b,r,q,c] * C[b,k,c]
        Rs[b,r,q,w]  = Q_rope[b,r,q,w] * c
        S_rope[b,r,q,k] = sum[w] Rs[b,r,q,w] * K_rope[b,k,w]
        S[b,r,q,k]   = S_nope[b,r,q,k] + S_rope[b,r,q,k]
        P[b,r,q,k]   = softmax(S[b,r,q,k])
        O[b,r,q,c]   = sum[k] P[b,r,q,k] * C[b,k,c]
    """,
    extents={"b": B, "r": h, "q": N_q, "k": N_k, "c": d_c, "w": d_r},
    reference="DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2",
    widths={"C": b_kv, "K_rope": b_kv},
    schedules=("naive", "flash2", "flash2-packed"),
)

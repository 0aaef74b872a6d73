"""DeepSeek Sparse Attention: a cheap indexer scores all keys, the topk best are attended to as latents."""

from derive.attention.topk import POSITION_BYTES
from derive.symbols import B, N_k, N_q, b, b_i, b_kv, b_s, d_c, d_i, d_r, h, h_i, n_t
from derive.variant import Variant

VARIANT = Variant(
    name="dsa",
    says="DeepSeek sparse attention: hi indexer heads of width di score all keys, absorbed latent attention over the topk best",
    text="""
        X[b,i,q,j]   = sum[a] Q_I[b,i,q,a] * K_I[b,j,a]
        R[b,i,q,j]   = relu(X[b,i,q,j])
        I[b,q,j]     = sum[i] w[b,q,i] * R[b,i,q,j]
        T[b,q,k]     = top(I[b,q,j])
        C_sel[b,q,k,c] = gather(C[b,j,c], T[b,q,k])
        K_sel[b,q,k,w] = gather(K_rope[b,j,w], T[b,q,k])
        Ns[b,r,q,c]  = Q[b,r,q,c] * c
        S_nope[b,r,q,k] = sum[c] Ns[b,r,q,c] * C_sel[b,q,k,c]
        Rs[b,r,q,w]  = Q_rope[b,r,q,w] * c
        S_rope[b,r,q,k] = sum[w] Rs[b,r,q,w] * K_sel[b,q,k,w]
        S[b,r,q,k]   = S_nope[b,r,q,k] + S_rope[b,r,q,k]
        P[b,r,q,k]   = softmax(S[b,r,q,k])
        O[b,r,q,c]   = sum[k] P[b,r,q,k] * C_sel[b,q,k,c]
    """,
    extents={"b": B, "r": h, "q": N_q, "j": N_k, "k": n_t, "c": d_c, "w": d_r, "i": h_i, "a": d_i},
    at_most=((n_t, N_k),),
    reference="DeepSeek-AI 2025, arXiv:2512.02556, section 2.1",
    widths={"Q_I": b_i, "K_I": b_i, "I": b_s, "T": POSITION_BYTES, "C": b_kv, "C_sel": b_kv, "K_rope": b, "K_sel": b},
    schedules=("per-query",),
)

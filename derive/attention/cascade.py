"""Sequences that share a prefix: N_p keys in memory once, without a batch index, and N_k keys of each sequence's own.

The two parts' states (m, l, U) are merged relative to the larger of their maxima: each part's sums are weighed by the
exponential of what its own lies below, at most 1, so that nothing overflows however far the scores of the two lie apart.
"""

from derive.symbols import B, N_k, N_p, N_q, b_kv, b_part, d, d_v, h, h_k
from derive.variant import Variant

VARIANT = Variant(
    name="cascade",
    says="B sequences that share a prefix of N_p keys, stored once, and have N_k keys of their own; h query heads share hk",
    text="""
        Qp[b,g,r,q,d] = Q[b,g,r,q,d] * c
        Sp[b,g,r,q,p] = sum[d] Qp[b,g,r,q,d] * Kp[g,p,d]
        mp[b,g,r,q]   = max[p] Sp[b,g,r,q,p]
        Xp[b,g,r,q,p] = Sp[b,g,r,q,p] - mp[b,g,r,q]
        Ep[b,g,r,q,p] = exp(Xp[b,g,r,q,p])
        lp[b,g,r,q]   = sum[p] Ep[b,g,r,q,p]
        Up[b,g,r,q,e] = sum[p] Ep[b,g,r,q,p] * Vp[g,p,e]
        Qs[b,g,r,q,d] = Q[b,g,r,q,d] * c
        S[b,g,r,q,k]  = sum[d] Qs[b,g,r,q,d] * K[b,g,k,d]
        m[b,g,r,q]    = max[k] S[b,g,r,q,k]
        X[b,g,r,q,k]  = S[b,g,r,q,k] - m[b,g,r,q]
        E[b,g,r,q,k]  = exp(X[b,g,r,q,k])
        l[b,g,r,q]    = sum[k] E[b,g,r,q,k]
        U[b,g,r,q,e]  = sum[k] E[b,g,r,q,k] * V[b,g,k,e]
        mj[b,g,r,q]   = max(mp[b,g,r,q], m[b,g,r,q])
        zp[b,g,r,q]   = mp[b,g,r,q] - mj[b,g,r,q]
        wp[b,g,r,q]   = exp(zp[b,g,r,q])
        z[b,g,r,q]    = m[b,g,r,q] - mj[b,g,r,q]
        w[b,g,r,q]    = exp(z[b,g,r,q])
        lv[b,g,r,q]   = wp[b,g,r,q] * lp[b,g,r,q]
        lw[b,g,r,q]   = w[b,g,r,q] * l[b,g,r,q]
        L[b,g,r,q]    = lv[b,g,r,q] + lw[b,g,r,q]
        Uv[b,g,r,q,e] = wp[b,g,r,q] * Up[b,g,r,q,e]
        Uw[b,g,r,q,e] = w[b,g,r,q] * U[b,g,r,q,e]
        A[b,g,r,q,e]  = Uv[b,g,r,q,e] + Uw[b,g,r,q,e]
        O[b,g,r,q,e]  = A[b,g,r,q,e] / L[b,g,r,q]
    """,
    extents={"b": B, "g": h_k, "r": h / h_k, "q": N_q, "p": N_p, "k": N_k, "d": d, "e": d_v},
    reference="Ye et al. 2025, FlashInfer, arXiv:2501.01005, section 3.1; flashinfer.ai/2024/02/02/cascade-inference.html",
    divides=((h_k, h),),
    one_sequence=False,
    schedules=("per-sequence", "cascade"),
    widths={"Kp": b_kv, "Vp": b_kv} | dict.fromkeys(("mp", "lp", "Up", "m", "l", "U"), b_part),
)

"""Mamba-2's state-space duality in chunks: Q, K, V are its C, B and X; f is the log of the decay, one a head and token."""

from derive.symbols import B, C_k, N_q, b_h, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="ssd",
    says="Mamba-2 SSD in chunks, B and C a head: Q, K, V are its C, B, X (times dt), d its state size, dv its head dimension",
    text="""
        T[b,h,n,k]    = sum[q] f[b,h,n,q]
        R[b,h,n,k]    = T[b,h,n,k] - f[b,h,n,k]
        Gk[b,h,n,k]   = exp(R[b,h,n,k])
        Kg[b,h,n,k,d] = K[b,h,n,k,d] * Gk[b,h,n,k]
        X[b,h,n,d,e]  = sum[k] Kg[b,h,n,k,d] * V[b,h,n,k,e]
        L[b,h,n]      = sum[k] f[b,h,n,k]
        g[b,h,n]      = exp(L[b,h,n])
        H[b,h,n,d,e]  = previous[n] J[b,h,n,d,e]
        F[b,h,n,d,e]  = g[b,h,n] * H[b,h,n,d,e]
        J[b,h,n,d,e]  = F[b,h,n,d,e] + X[b,h,n,d,e]
        A[b,h,n,q]    = sum[k] f[b,h,n,k]
        Ak[b,h,n,k]   = view(A[b,h,n,q])
        D[b,h,n,q,k]  = A[b,h,n,q] - Ak[b,h,n,k]
        G[b,h,n,q,k]  = exp(D[b,h,n,q,k])
        S[b,h,n,q,k]  = sum[d] Q[b,h,n,q,d] * K[b,h,n,k,d]
        P[b,h,n,q,k]  = S[b,h,n,q,k] * G[b,h,n,q,k]
        Y[b,h,n,q,e]  = sum[k] P[b,h,n,q,k] * V[b,h,n,k,e]
        Gq[b,h,n,q]   = exp(A[b,h,n,q])
        Qg[b,h,n,q,d] = Q[b,h,n,q,d] * Gq[b,h,n,q]
        Z[b,h,n,q,e]  = sum[d] Qg[b,h,n,q,d] * H[b,h,n,d,e]
        O[b,h,n,q,e]  = Y[b,h,n,q,e] + Z[b,h,n,q,e]
    """,
    extents={"b": B, "h": h, "n": N_q / C_k, "q": C_k, "k": C_k, "d": d, "e": d_v},
    divides=((C_k, N_q),),
    reference="Dao & Gu 2024, arXiv:2405.21060, section 6",
    own_mask="causal",
    widths={"H": b_h},
    schedules=("chunkwise", "chunkwise-materialised"),
)

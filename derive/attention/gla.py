"""Gated linear attention in chunks: each channel of the state has a decay of its own at each token, exp(f)."""

from derive.symbols import B, C_k, N_q, b_h, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="gla",
    says="gated linear attention in chunks: f is the log of the decay of each channel at each token, cumulated inside a chunk",
    text="""
        T[b,h,n,k,d]  = sum[q] f[b,h,n,q,d]
        R[b,h,n,k,d]  = T[b,h,n,k,d] - f[b,h,n,k,d]
        Gk[b,h,n,k,d] = exp(R[b,h,n,k,d])
        Kg[b,h,n,k,d] = K[b,h,n,k,d] * Gk[b,h,n,k,d]
        X[b,h,n,d,e]  = sum[k] Kg[b,h,n,k,d] * V[b,h,n,k,e]
        L[b,h,n,d]    = sum[k] f[b,h,n,k,d]
        g[b,h,n,d]    = exp(L[b,h,n,d])
        H[b,h,n,d,e]  = previous[n] J[b,h,n,d,e]
        F[b,h,n,d,e]  = g[b,h,n,d] * H[b,h,n,d,e]
        J[b,h,n,d,e]  = F[b,h,n,d,e] + X[b,h,n,d,e]
        A[b,h,n,q,d]  = sum[k] f[b,h,n,k,d]
        Gq[b,h,n,q,d] = exp(A[b,h,n,q,d])
        Qg[b,h,n,q,d] = Q[b,h,n,q,d] * Gq[b,h,n,q,d]
        Ak[b,h,n,k,d] = view(A[b,h,n,q,d])
        An[b,h,n,k,d] = neg(Ak[b,h,n,k,d])
        Gi[b,h,n,k,d] = exp(An[b,h,n,k,d])
        Ki[b,h,n,k,d] = K[b,h,n,k,d] * Gi[b,h,n,k,d]
        S[b,h,n,q,k]  = sum[d] Qg[b,h,n,q,d] * Ki[b,h,n,k,d]
        Y[b,h,n,q,e]  = sum[k] S[b,h,n,q,k] * V[b,h,n,k,e]
        Z[b,h,n,q,e]  = sum[d] Qg[b,h,n,q,d] * H[b,h,n,d,e]
        O[b,h,n,q,e]  = Y[b,h,n,q,e] + Z[b,h,n,q,e]
    """,
    extents={"b": B, "h": h, "n": N_q / C_k, "q": C_k, "k": C_k, "d": d, "e": d_v},
    divides=((C_k, N_q),),
    reference="Yang et al. 2023, arXiv:2312.06635, equations 4 to 7",
    own_mask="causal",
    widths={"H": b_h},
    schedules=("chunkwise", "chunkwise-materialised"),
)

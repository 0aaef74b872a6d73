"""Retention (RetNet) in chunks: one fixed decay a head, as the tensors D, row and key decays that the paper names."""

from derive.symbols import B, C_k, N_q, b_h, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="retention",
    says="RetNet in chunks: a fixed decay a head, D inside a chunk, xi from its start, zeta to its end, g over all of it",
    text="""
        Vz[b,h,n,k,e] = V[b,h,n,k,e] * zeta[h,k]
        X[b,h,n,d,e]  = sum[k] K[b,h,n,k,d] * Vz[b,h,n,k,e]
        H[b,h,n,d,e]  = previous[n] J[b,h,n,d,e]
        F[b,h,n,d,e]  = g[h] * H[b,h,n,d,e]
        J[b,h,n,d,e]  = F[b,h,n,d,e] + X[b,h,n,d,e]
        S[b,h,n,q,k]  = sum[d] Q[b,h,n,q,d] * K[b,h,n,k,d]
        A[b,h,n,q,k]  = S[b,h,n,q,k] * D[h,q,k]
        Y[b,h,n,q,e]  = sum[k] A[b,h,n,q,k] * V[b,h,n,k,e]
        Z[b,h,n,q,e]  = sum[d] Q[b,h,n,q,d] * H[b,h,n,d,e]
        Zx[b,h,n,q,e] = Z[b,h,n,q,e] * xi[h,q]
        O[b,h,n,q,e]  = Y[b,h,n,q,e] + Zx[b,h,n,q,e]
    """,
    extents={"b": B, "h": h, "n": N_q / C_k, "q": C_k, "k": C_k, "d": d, "e": d_v},
    divides=((C_k, N_q),),
    reference="Sun et al. 2023, RetNet, arXiv:2307.08621, equation 7",
    own_mask="causal",
    widths={"H": b_h},
    schedules=("chunkwise", "chunkwise-materialised"),
)

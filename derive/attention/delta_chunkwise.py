"""The gated delta rule in chunks: a triangular inverse makes all the writes of a chunk at once (WY form, UT transform).

Token r of a chunk writes u_r = beta_r (v_r - k_r G_r), where G_r is the state that it finds, decayed. With a_r the decay since
the start of the chunk, G_r = a_r H + sum_{i<r} (a_r/a_i) k_i u_i, so the u of a chunk solve a unit lower triangular system,

    (I + L) u = beta v - (beta a k) H,    L[r,i] = beta_r (a_r/a_i) (k_r k_i) below the diagonal:

u = U - W H with T = (I + L)^-1, U = T (beta v) and W = T (beta a k), which need no state. The decays of the outputs (Gq, Go)
are made apart from those of the writes, so that a kernel of their own reads one gate a token and no C x C decays.

The graph is written by hand and its equality with the rule by token is tested over random shapes; no rule derives it.
"""

from derive.symbols import B, C_k, N_q, b_h, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="delta-chunkwise",
    says="the gated delta rule in chunks: f is the log of the decay, T the inverse that makes a chunk's writes at once",
    text="""
        A[b,h,n,q]    = sum[k] f[b,h,n,k]
        Ak[b,h,n,k]   = view(A[b,h,n,q])
        D[b,h,n,q,k]  = A[b,h,n,q] - Ak[b,h,n,k]
        G[b,h,n,q,k]  = exp(D[b,h,n,q,k])
        Y[b,h,n,q,k]  = sum[d] K[b,h,n,q,d] * K[b,h,n,k,d]
        Yg[b,h,n,q,k] = Y[b,h,n,q,k] * G[b,h,n,q,k]
        L[b,h,n,q,k]  = beta[b,h,n,q] * Yg[b,h,n,q,k]
        T[b,h,n,q,k]  = inverse(L[b,h,n,q,k])
        Vb[b,h,n,k,e] = beta[b,h,n,k] * V[b,h,n,k,e]
        U[b,h,n,q,e]  = sum[k] T[b,h,n,q,k] * Vb[b,h,n,k,e]
        Ga[b,h,n,k]   = exp(Ak[b,h,n,k])
        Gb[b,h,n,k]   = beta[b,h,n,k] * Ga[b,h,n,k]
        Kb[b,h,n,k,d] = K[b,h,n,k,d] * Gb[b,h,n,k]
        W[b,h,n,q,d]  = sum[k] T[b,h,n,q,k] * Kb[b,h,n,k,d]
        C[b,h,n,k]    = sum[q] f[b,h,n,q]
        R[b,h,n,k]    = C[b,h,n,k] - f[b,h,n,k]
        Gk[b,h,n,k]   = exp(R[b,h,n,k])
        Kg[b,h,n,k,d] = K[b,h,n,k,d] * Gk[b,h,n,k]
        F[b,h,n]      = sum[k] f[b,h,n,k]
        g[b,h,n]      = exp(F[b,h,n])
        H[b,h,n,d,e]  = previous[n] J[b,h,n,d,e]
        M[b,h,n,q,e]  = sum[d] W[b,h,n,q,d] * H[b,h,n,d,e]
        u[b,h,n,q,e]  = U[b,h,n,q,e] - M[b,h,n,q,e]
        uk[b,h,n,k,e] = view(u[b,h,n,q,e])
        X[b,h,n,d,e]  = sum[k] Kg[b,h,n,k,d] * uk[b,h,n,k,e]
        Hg[b,h,n,d,e] = g[b,h,n] * H[b,h,n,d,e]
        J[b,h,n,d,e]  = Hg[b,h,n,d,e] + X[b,h,n,d,e]
        S[b,h,n,q,k]  = sum[d] Q[b,h,n,q,d] * K[b,h,n,k,d]
        Aq[b,h,n,q]   = sum[k] f[b,h,n,k]
        Aqk[b,h,n,k]  = view(Aq[b,h,n,q])
        Dq[b,h,n,q,k] = Aq[b,h,n,q] - Aqk[b,h,n,k]
        Gq[b,h,n,q,k] = exp(Dq[b,h,n,q,k])
        P[b,h,n,q,k]  = S[b,h,n,q,k] * Gq[b,h,n,q,k]
        E[b,h,n,q,e]  = sum[k] P[b,h,n,q,k] * uk[b,h,n,k,e]
        Go[b,h,n,q]   = exp(Aq[b,h,n,q])
        Qg[b,h,n,q,d] = Q[b,h,n,q,d] * Go[b,h,n,q]
        Z[b,h,n,q,e]  = sum[d] Qg[b,h,n,q,d] * H[b,h,n,d,e]
        O[b,h,n,q,e]  = E[b,h,n,q,e] + Z[b,h,n,q,e]
    """,
    extents={"b": B, "h": h, "n": N_q / C_k, "q": C_k, "k": C_k, "d": d, "e": d_v},
    divides=((C_k, N_q),),
    reference="Yang et al. 2024, Gated DeltaNet, arXiv:2412.06464; its WY form: Yang et al. 2024, DeltaNet, arXiv:2406.06484",
    own_mask="causal",
    widths={"H": b_h},
    schedules=("chunkwise", "chunkwise-materialised"),
)

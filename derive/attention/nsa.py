"""Native sparse attention: one decode step over compressed, selected and recent keys, each branch with keys of its own.

The compressed branch leaves the log-sum-exp z of its scores. From it their probabilities P_imp are made again and summed over
the heads of a group, then over the compressed blocks that overlap a selected one: equation 9 of the paper, whose positions
are the table Y, with weights A that are 0 where it begins before the first block and else 1.
"""

import sympy as sp

from derive.attention.topk import POSITION_BYTES
from derive.symbols import B, N_k, W, b_kv, d, d_s, d_v, h, h_k, l_c, l_s, n_b
from derive.variant import Variant

VARIANT = Variant(
    name="nsa",
    says="a decode step of native sparse attention: a compressed key a stride, the nb best blocks of ls keys, the last W keys",
    text="""
        Q_cmp[b,g,r,q,d] = Q[b,g,r,q,d] * c
        S_cmp[b,g,r,q,p] = sum[d] Q_cmp[b,g,r,q,d] * K_cmp[b,g,p,d]
        m_cmp[b,g,r,q]   = max[p] S_cmp[b,g,r,q,p]
        X_cmp[b,g,r,q,p] = S_cmp[b,g,r,q,p] - m_cmp[b,g,r,q]
        E_cmp[b,g,r,q,p] = exp(X_cmp[b,g,r,q,p])
        l_cmp[b,g,r,q]   = sum[p] E_cmp[b,g,r,q,p]
        U_cmp[b,g,r,q,e] = sum[p] E_cmp[b,g,r,q,p] * V_cmp[b,g,p,e]
        O_cmp[b,g,r,q,e] = U_cmp[b,g,r,q,e] / l_cmp[b,g,r,q]
        L_cmp[b,g,r,q]   = log(l_cmp[b,g,r,q])
        z[b,g,r,q]     = m_cmp[b,g,r,q] + L_cmp[b,g,r,q]

        Q_imp[b,g,r,q,d] = Q[b,g,r,q,d] * c
        S_imp[b,g,r,q,j] = sum[d] Q_imp[b,g,r,q,d] * K_cmp[b,g,j,d]
        X_imp[b,g,r,q,j] = S_imp[b,g,r,q,j] - z[b,g,r,q]
        P_imp[b,g,r,q,j] = exp(X_imp[b,g,r,q,j])
        I[b,g,q,j]     = sum[r] P_imp[b,g,r,q,j]
        J[b,g,q,n,v,w] = gather(I[b,g,q,j], Y[n,v,w])
        Z[b,g,q,n]     = sum[v,w] A[n,v,w] * J[b,g,q,n,v,w]
        T[b,g,q,t]     = top(Z[b,g,q,n])

        K_sel[b,g,q,t,y,d] = gather(K_slc[b,g,n,y,d], T[b,g,q,t])
        V_sel[b,g,q,t,y,e] = gather(V_slc[b,g,n,y,e], T[b,g,q,t])
        Q_slc[b,g,r,q,d]   = Q[b,g,r,q,d] * c
        S_slc[b,g,r,q,t,y] = sum[d] Q_slc[b,g,r,q,d] * K_sel[b,g,q,t,y,d]
        m_slc[b,g,r,q]     = max[t,y] S_slc[b,g,r,q,t,y]
        X_slc[b,g,r,q,t,y] = S_slc[b,g,r,q,t,y] - m_slc[b,g,r,q]
        E_slc[b,g,r,q,t,y] = exp(X_slc[b,g,r,q,t,y])
        l_slc[b,g,r,q]     = sum[t,y] E_slc[b,g,r,q,t,y]
        U_slc[b,g,r,q,e]   = sum[t,y] E_slc[b,g,r,q,t,y] * V_sel[b,g,q,t,y,e]
        O_slc[b,g,r,q,e]   = U_slc[b,g,r,q,e] / l_slc[b,g,r,q]

        Q_win[b,g,r,q,d] = Q[b,g,r,q,d] * c
        S_win[b,g,r,q,k] = sum[d] Q_win[b,g,r,q,d] * K_win[b,g,k,d]
        m_win[b,g,r,q]   = max[k] S_win[b,g,r,q,k]
        X_win[b,g,r,q,k] = S_win[b,g,r,q,k] - m_win[b,g,r,q]
        E_win[b,g,r,q,k] = exp(X_win[b,g,r,q,k])
        l_win[b,g,r,q]   = sum[k] E_win[b,g,r,q,k]
        U_win[b,g,r,q,e] = sum[k] E_win[b,g,r,q,k] * V_win[b,g,k,e]
        O_win[b,g,r,q,e] = U_win[b,g,r,q,e] / l_win[b,g,r,q]

        G_cmp[b,g,r,q,e] = g_cmp[b,g,r,q] * O_cmp[b,g,r,q,e]
        G_slc[b,g,r,q,e] = g_slc[b,g,r,q] * O_slc[b,g,r,q,e]
        G_win[b,g,r,q,e] = g_win[b,g,r,q] * O_win[b,g,r,q,e]
        G[b,g,r,q,e]   = G_cmp[b,g,r,q,e] + G_slc[b,g,r,q,e]
        O[b,g,r,q,e]   = G[b,g,r,q,e] + G_win[b,g,r,q,e]
    """,
    extents={
        **{"b": B, "g": h_k, "r": h / h_k, "q": sp.Integer(1), "d": d, "e": d_v},
        **{"p": N_k / d_s, "j": N_k / d_s, "n": N_k / l_s, "v": l_s / d_s, "w": l_c / d_s},
        **{"t": n_b, "y": l_s, "k": W},
    },
    divides=((h_k, h), (d_s, l_c), (d_s, l_s), (l_s, N_k)),
    at_most=((n_b, N_k / l_s), (W, N_k)),
    reference="Yuan et al. 2025, arXiv:2502.11089, section 3",
    widths=dict.fromkeys(("K_cmp", "V_cmp", "K_slc", "V_slc", "K_sel", "V_sel", "K_win", "V_win"), b_kv)
    | dict.fromkeys(("Y", "T"), POSITION_BYTES),
    schedules=("per-query",),
    own_mask="full",
    no_mask="a decode step sees what its three branches read",
)

"""The gated delta rule, token by token: the state forgets a little, then corrects what it says about the key."""

from derive.symbols import B, N_q, b_h, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="delta",
    says="the gated delta rule, token by token: what the decayed state answers to the key is corrected towards the value",
    text="""
        H[b,h,q,d,e] = previous[q] J[b,h,q,d,e]
        G[b,h,q,d,e] = alpha[b,h,q] * H[b,h,q,d,e]
        U[b,h,q,e]   = sum[d] K[b,h,q,d] * G[b,h,q,d,e]
        R[b,h,q,e]   = V[b,h,q,e] - U[b,h,q,e]
        W[b,h,q,e]   = beta[b,h,q] * R[b,h,q,e]
        X[b,h,q,d,e] = K[b,h,q,d] * W[b,h,q,e]
        J[b,h,q,d,e] = G[b,h,q,d,e] + X[b,h,q,d,e]
        O[b,h,q,e]   = sum[d] Q[b,h,q,d] * J[b,h,q,d,e]
    """,
    extents={"b": B, "h": h, "q": N_q, "d": d, "e": d_v},
    reference="Yang et al. 2024, Gated DeltaNet, arXiv:2412.06464, equation 10",
    own_mask="causal",
    widths={"H": b_h},
    schedules=("recurrent", "chunkwise"),
)

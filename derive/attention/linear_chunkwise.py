"""Linear attention in chunks of C: inside a chunk as attention without a softmax, between chunks by a state.

The rule chunk-recurrence makes the same cascade of the one by token, up to names: schedule chunked of linear-recurrent.
"""

from derive.symbols import B, C_k, N_q, b_h, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="linear-chunkwise",
    says="causal linear attention in chunks of C tokens: a d x dv state carries what earlier chunks have seen",
    text="""
        X[b,h,n,d,e] = sum[k] K[b,h,n,k,d] * V[b,h,n,k,e]
        H[b,h,n,d,e] = previous[n] J[b,h,n,d,e]
        J[b,h,n,d,e] = H[b,h,n,d,e] + X[b,h,n,d,e]
        S[b,h,n,q,k] = sum[d] Q[b,h,n,q,d] * K[b,h,n,k,d]
        Y[b,h,n,q,e] = sum[k] S[b,h,n,q,k] * V[b,h,n,k,e]
        Z[b,h,n,q,e] = sum[d] Q[b,h,n,q,d] * H[b,h,n,d,e]
        O[b,h,n,q,e] = Y[b,h,n,q,e] + Z[b,h,n,q,e]
    """,
    extents={"b": B, "h": h, "n": N_q / C_k, "q": C_k, "k": C_k, "d": d, "e": d_v},
    divides=((C_k, N_q),),
    reference="Katharopoulos et al. 2020, arXiv:2006.16236; in chunks: Yang et al. 2023, arXiv:2312.06635, section 2.2",
    own_mask="causal",
    widths={"H": b_h},
    schedules=("chunkwise", "chunkwise-materialised"),
)

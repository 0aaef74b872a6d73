"""Linear attention token by token: the state takes in a key and a value, and is asked by the query."""

from derive.symbols import B, N_q, b_h, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="linear-recurrent",
    says="causal linear attention token by token: the d x dv state takes in one key and value, and the query reads it",
    text="""
        H[b,h,q,d,e] = previous[q] J[b,h,q,d,e]
        X[b,h,q,d,e] = K[b,h,q,d] * V[b,h,q,e]
        J[b,h,q,d,e] = H[b,h,q,d,e] + X[b,h,q,d,e]
        O[b,h,q,e]   = sum[d] Q[b,h,q,d] * J[b,h,q,d,e]
    """,
    extents={"b": B, "h": h, "q": N_q, "d": d, "e": d_v},
    reference="Katharopoulos et al. 2020, arXiv:2006.16236, section 3.4",
    own_mask="causal",
    widths={"H": b_h},
    schedules=("recurrent", "chunkwise"),
)

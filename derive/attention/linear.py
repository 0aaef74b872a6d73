"""Linear attention without a mask: a feature map has been applied to Q and K, and no softmax stands between the products."""

from derive.symbols import B, N_k, N_q, d, d_v, h
from derive.variant import Variant

VARIANT = Variant(
    name="linear",
    says="linear attention, (phi(Q) phi(K)^T) V without a softmax; Q and K are features, d a head's number of them",
    text="""
        S[b,h,q,k] = sum[d] Q[b,h,q,d] * K[b,h,k,d]
        O[b,h,q,e] = sum[k] S[b,h,q,k] * V[b,h,k,e]
    """,
    extents={"b": B, "h": h, "q": N_q, "k": N_k, "d": d, "e": d_v},
    reference="Katharopoulos et al. 2020, arXiv:2006.16236, section 3.2",
    schedules=("naive", "flash2", "reassociated"),
)

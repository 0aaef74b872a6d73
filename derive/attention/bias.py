"""Additive bias shared by all heads: one number a pair of query and key, read from memory."""

from dataclasses import replace

from derive.attention import mha

VARIANT = replace(
    mha.VARIANT,
    name="bias",
    says="attention with a bias [N_q, N_k] on the scores, one for all heads and sequences, read from memory",
    text="""
        Qs[b,h,q,d] = Q[b,h,q,d] * c
        S[b,h,q,k]  = sum[d] Qs[b,h,q,d] * K[b,h,k,d]
        Z[b,h,q,k]  = S[b,h,q,k] + A[q,k]
        P[b,h,q,k]  = softmax(Z[b,h,q,k])
        O[b,h,q,e]  = sum[k] P[b,h,q,k] * V[b,h,k,e]
    """,
    reference="Raffel et al. 2020, arXiv:1910.10683, section 2.1",
)

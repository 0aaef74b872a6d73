"""Sigmoid attention: each score by itself through a sigmoid, so that no row needs a sum."""

from dataclasses import replace

from derive.attention import mha

VARIANT = replace(
    mha.VARIANT,
    name="sigmoid",
    says="sigmoid attention, sigmoid(Q K^T / sqrt(d) + a) V with one scalar a; there is no softmax and no row statistic",
    text="""
        Qs[b,h,q,d] = Q[b,h,q,d] * c
        S[b,h,q,k]  = sum[d] Qs[b,h,q,d] * K[b,h,k,d]
        Z[b,h,q,k]  = S[b,h,q,k] + a
        P[b,h,q,k]  = sigmoid(Z[b,h,q,k])
        O[b,h,q,e]  = sum[k] P[b,h,q,k] * V[b,h,k,e]
    """,
    reference="Ramapuram et al. 2024, arXiv:2409.04431, section 2",
)

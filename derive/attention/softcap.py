"""Soft-capped attention: scores held between -cap and cap by a tanh."""

from dataclasses import replace

from derive.attention import mha

VARIANT = replace(
    mha.VARIANT,
    name="softcap",
    says="attention with capped scores, cap tanh(S / cap)",
    text="""
        Qs[b,h,q,d] = Q[b,h,q,d] * c
        S[b,h,q,k]  = sum[d] Qs[b,h,q,d] * K[b,h,k,d]
        R[b,h,q,k]  = S[b,h,q,k] / cap
        T[b,h,q,k]  = tanh(R[b,h,q,k])
        Z[b,h,q,k]  = T[b,h,q,k] * cap
        P[b,h,q,k]  = softmax(Z[b,h,q,k])
        O[b,h,q,e]  = sum[k] P[b,h,q,k] * V[b,h,k,e]
    """,
    reference="Gemma Team 2024, arXiv:2408.00118, section 2",
)

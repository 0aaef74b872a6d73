"""Attention with a sink in the denominator: each head has one more logit that takes a share and gives no value."""

from dataclasses import replace

from derive.attention import mha
from derive.symbols import b_l

VARIANT = replace(
    mha.VARIANT,
    name="sink-logits",
    says="attention whose softmax has one more logit a head in its denominator: P = exp(S - m) / (l + exp(sink - m))",
    text="""
        Qs[b,h,q,d] = Q[b,h,q,d] * c
        S[b,h,q,k]  = sum[d] Qs[b,h,q,d] * K[b,h,k,d]
        m[b,h,q]    = max[k] S[b,h,q,k]
        X[b,h,q,k]  = S[b,h,q,k] - m[b,h,q]
        E[b,h,q,k]  = exp(X[b,h,q,k])
        l[b,h,q]    = sum[k] E[b,h,q,k]
        t[b,h,q]    = sink[h] - m[b,h,q]
        u[b,h,q]    = exp(t[b,h,q])
        n[b,h,q]    = l[b,h,q] + u[b,h,q]
        P[b,h,q,k]  = E[b,h,q,k] / n[b,h,q]
        O[b,h,q,e]  = sum[k] P[b,h,q,k] * V[b,h,k,e]
    """,
    reference="Xiao et al. 2024, arXiv:2309.17453, section 3.3; OpenAI 2025, arXiv:2508.10925 (gpt-oss)",
    widths=dict.fromkeys(("m", "l", "t", "u", "n", "sink"), b_l),
)

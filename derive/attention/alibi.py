"""ALiBi: a bias that falls linearly with the distance of query and key, by a slope for each head."""

from dataclasses import replace

from derive.attention import mha

VARIANT = replace(
    mha.VARIANT,
    name="alibi",
    says="attention with linear biases: slope[h] (k - q) on the scores; the softmax cancels the slope[h] q of a row",
    text="""
        Qs[b,h,q,d] = Q[b,h,q,d] * c
        S[b,h,q,k]  = sum[d] Qs[b,h,q,d] * K[b,h,k,d]
        x[k]        = position()
        A[h,k]      = slope[h] * x[k]
        Z[b,h,q,k]  = S[b,h,q,k] + A[h,k]
        P[b,h,q,k]  = softmax(Z[b,h,q,k])
        O[b,h,q,e]  = sum[k] P[b,h,q,k] * V[b,h,k,e]
    """,
    reference="Press et al. 2022, arXiv:2108.12409, section 3",
    constants=("slope",),
)

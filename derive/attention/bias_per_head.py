"""Additive bias of each head, such as relative positions or pair representations: one number a head, query and key."""

from dataclasses import replace

from derive.attention import bias

VARIANT = replace(
    bias.VARIANT,
    name="bias-per-head",
    says="attention with a bias [h, N_q, N_k] on the scores, one for each head, read from memory",
    text=bias.VARIANT.text.replace("A[q,k]", "A[h,q,k]"),
    reference="Raffel et al. 2020, arXiv:1910.10683, section 2.1; Jumper et al. 2021, doi:10.1038/s41586-021-03819-2",
)

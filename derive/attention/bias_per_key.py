"""Additive bias of each key, such as a padding mask [B, 1, 1, N]: one number a sequence and key."""

from dataclasses import replace

from derive.attention import bias

VARIANT = replace(
    bias.VARIANT,
    name="bias-per-key",
    says="attention with a bias [B, 1, 1, N_k] on the scores, such as a padding mask, read from memory",
    text=bias.VARIANT.text.replace("A[q,k]", "A[b,k]"),
    reference="Devlin et al. 2019, arXiv:1810.04805 (padding mask)",
)

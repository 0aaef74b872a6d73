"""The variants as graphs, one a file; this tuple is the whole registry."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from derive.variant import Variant

MODULES = (
    "mha", "gqa", "gqa_repeated", "mqa", "cross", "decode", "paged", "cascade",
    "mla", "mla_latent", "grouped_latent", "grouped_tied", "differential",
    "bias", "bias_per_head", "bias_per_key", "alibi", "softcap", "sigmoid", "dropout", "sink_logits",
    "linear", "linear_chunkwise", "linear_recurrent", "retention", "gla", "mlstm", "ssd", "delta", "delta_chunkwise",
    "mha_backward", "gqa_backward", "mqa_backward", "cross_backward", "mla_backward",
    "bias_backward", "alibi_backward", "softcap_backward", "sigmoid_backward", "dropout_backward", "linear_backward",
    "topk", "dsa", "nsa",
    "matmul",
)  # fmt: skip
"""Files of this folder in reading order; a variant's name is its file's, with hyphens."""


def names() -> tuple[str, ...]:
    """Every variant's name, without importing any."""
    return tuple(module.replace("_", "-") for module in MODULES)


def variant(name: str) -> Variant:
    """The variant *name*.

    Raises:
        UnknownNameError: there is none; the nearest name is suggested.
    """
    from derive.errors import nearest

    if name not in names():
        raise nearest("variant", name, names(), "derive variants")
    found: Variant = import_module(f"derive.attention.{name.replace('-', '_')}").VARIANT
    return found

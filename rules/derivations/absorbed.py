"""FlashAttention-2 on latents: the products that would expand keys and values are absorbed into queries and outputs."""

from dataclasses import replace

from derive.rewrite import WherePossible
from rules.algebra import reassociate
from rules.derivations import flash2

PLAN = replace(
    flash2.PLAN,
    name="absorbed",
    says="flash2 that never expands keys and values: the expansion is absorbed into Q before the kernel and into O after it",
    reference="DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2",
    algebra=(reassociate.RULE, WherePossible(reassociate.RULE), *flash2.PLAN.algebra),
)

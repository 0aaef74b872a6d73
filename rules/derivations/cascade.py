"""Cascade inference: the queries of all sequences fill the tiles that read the shared prefix; it is read once for all."""

from dataclasses import replace

from derive.rewrite import WherePossible
from rules.derivations import per_sequence
from rules.schedule import keep_resident, pack_heads

PLAN = replace(
    per_sequence.PLAN,
    name="cascade",
    says="three kernels: prefix, own keys, merge; queries of all sequences share the tiles that read the prefix",
    reference="Ye et al. 2025, FlashInfer, arXiv:2501.01005, section 3.1",
    schedule=(
        *per_sequence.BEFORE_PACKING,
        WherePossible(pack_heads.RULE),
        WherePossible(keep_resident.FORWARD),
    ),
)

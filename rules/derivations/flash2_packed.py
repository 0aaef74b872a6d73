"""FlashAttention-2 with the query heads of a group packed into one tile."""

from dataclasses import replace

from derive.rewrite import WherePossible
from rules.derivations import flash2
from rules.schedule import pack_heads

PLAN = replace(
    flash2.PLAN,
    name="flash2-packed",
    says="flash2 whose tiles hold all query heads of a group: K and V are read once for the group, not once a head",
    reference="Shah et al. 2024, arXiv:2407.08608",
    schedule=(*flash2.PLAN.schedule[:-1], WherePossible(pack_heads.GROUP, if_legal=True), flash2.PLAN.schedule[-1]),
)

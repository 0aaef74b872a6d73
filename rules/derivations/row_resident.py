"""Row-resident fusion: everything in one kernel that holds whole rows of scores; its footprint grows with N_k."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_r
from rules.plan import Plan
from rules.schedule import fuse_pairs, keep_resident, launch, tile
from rules.streamed import DEFERRED

PLAN = Plan(
    name="row-resident",
    says="one kernel that holds B_r whole rows of scores: two passes over k forbid tiling it, so the footprint needs N_k",
    reference="Kao et al. 2023, FLAT, arXiv:2107.06419",
    algebra=DEFERRED,
    schedule=(
        fuse_pairs.PAIRS,
        tile.QUERIES,
        launch.QUERIES,
        launch.HEADS,
        WherePossible(keep_resident.FORWARD),
    ),
    tiles={B_r: sp.Integer(128)},
)

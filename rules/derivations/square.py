"""Square tiling: op by op, each matrix product in tiles of all three of its loops; for fast memory below d^2 elements."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_c, B_d, B_r
from rules.algebra import split_softmax
from rules.plan import Plan
from rules.schedule import keep_resident, tile_product

PLAN = Plan(
    name="square",
    says="op by op with each product in square tiles: the scores cross memory, but tiles need not hold whole rows of Q or K",
    reference="Saha & Ye 2024, arXiv:2402.07443, theorem 3.5 (without the row maximum)",
    algebra=(WherePossible(split_softmax.RULE),),
    schedule=(WherePossible(tile_product.RULE), WherePossible(keep_resident.FORWARD)),
    tiles={B_r: sp.Integer(64), B_c: sp.Integer(64), B_d: sp.Integer(64)},
)

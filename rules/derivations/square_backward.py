"""Square tiling of the backward pass: op by op, each of its products in tiles of all three loops; for small fast memory."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_c, B_d, B_r
from rules.algebra import recompute, split_softmax_gradient
from rules.plan import Plan
from rules.schedule import keep_resident, tile_product

PLAN = Plan(
    name="square-backward",
    says="op by op with each product in square tiles, P saved and read: for fast memory below d^2 elements",
    reference="arXiv:2410.09397, theorem 4.1 (small cache)",
    algebra=(WherePossible(recompute.OPERANDS), WherePossible(split_softmax_gradient.RULE)),
    schedule=(WherePossible(tile_product.RULE), WherePossible(keep_resident.FORWARD)),
    tiles={B_r: sp.Integer(64), B_c: sp.Integer(64), B_d: sp.Integer(64)},
    direction="backward",
    after="square",
)

"""Selected keys: each query streams its own, its heads the rows of a tile; what selects them runs before, apart."""

import sympy as sp

from derive.rewrite import WherePossible
from derive.symbols import B_c, B_r
from rules.plan import Plan
from rules.schedule import fuse_pairs, keep_resident, launch, rows_of_heads, skip_masked, tile
from rules.streamed import STREAMED

ONE_QUERY = tile.tile("q", sp.Integer(1), beside="j")
"""The rows of an indexer's tile are its heads of one query."""

PLAN = Plan(
    name="per-query",
    says="a CTA for each query and B_r of its heads streams the keys selected for it; an indexer and its top-k run before",
    reference="DeepSeek-AI 2025, FlashMLA, github.com/deepseek-ai/FlashMLA (token-level sparse kernels)",
    algebra=STREAMED,
    schedule=(
        fuse_pairs.PAIRS,
        WherePossible(fuse_pairs.KEYS),
        rows_of_heads.RULE,
        WherePossible(rows_of_heads.RULE),
        tile.KEYS,
        WherePossible(tile.PREFIX),
        WherePossible(tile.BLOCKS),
        WherePossible(ONE_QUERY),
        WherePossible(launch.QUERIES),
        WherePossible(tile.INDEXED),
        WherePossible(launch.HEADS),
        WherePossible(skip_masked.RULE),
        WherePossible(keep_resident.FORWARD),
    ),
    tiles={B_r: sp.Integer(64), B_c: sp.Integer(64)},
)

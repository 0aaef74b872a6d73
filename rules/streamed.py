"""The algebra that fused forward schedules share: the softmax opened, its division deferred, its maximum run along."""

from derive.rewrite import WherePossible
from rules.algebra import defer_division, delay_division, distribute, online_softmax, share_heads, split_softmax

DEFERRED = (
    WherePossible(share_heads.RULE),
    WherePossible(split_softmax.RULE),
    WherePossible(distribute.RULE),
    WherePossible(delay_division.RULE),
    WherePossible(defer_division.RULE),
)
STREAMED = (*DEFERRED, WherePossible(online_softmax.RULE))

"""Which pairs the other alignment of the same mask would keep: said where queries and keys differ in number.

An expression has one alignment, whichever side is longer. Code that changes it with the longer side was reported at
https://github.com/ml-explore/mlx/issues/2835.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from derive.masks import TOP_LEFT
from derive.places import Places, places
from outputs.quantities import grouped

if TYPE_CHECKING:
    from outputs.explanation import Explanation


def other_alignment(answer: Explanation) -> list[str]:
    """One line that sets both alignments side by side; none where there is one alignment, or both keep as many pairs."""
    pattern, first = answer.request.pattern, answer.accounts[0]
    mask = first.mask_of
    if mask is None or pattern.form is None or pattern.form.takes or mask.name != pattern.name:
        return []
    here, there = "bottom-right", "top-left"
    name = pattern.name + TOP_LEFT
    if pattern.name.endswith(TOP_LEFT):
        here, there, name = there, here, pattern.name.removesuffix(TOP_LEFT)
    keys = mask.source if isinstance(mask, Places) else mask
    other = replace(pattern, name=name).mask(keys.rows, keys.columns, column=keys.column)
    if other is not None and keys is not mask:
        other = places(other, mask.column, mask.columns)
    kept = first.number(mask.pairs)
    would = None if other is None else first.number(other.pairs)
    if kept is None or would is None or kept == would:
        return []
    return [
        f"aligned {here}, whichever side is longer; mask={name} is {there} and would keep {grouped(would)} pairs, "
        f"not {grouped(kept)}"
    ]

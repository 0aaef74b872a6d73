r"""Which keys a query sees, as an interval ``lo(q) <= k <= hi(q)``; pairs, tiles and keys follow from it.

Every bound rises by one from a query to the next or stays put, so clamped bounds add up in closed form:

    R(x) = sum_{t <= x} clamp(t, 0, K) = m (m + 1)/2 + K max(0, x - K),    m = clamp(x, 0, K)

and the pairs of a causal mask are R(c + N_q - 1) - R(c - 1), exactly, whichever side is longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.extremes import least, most
from derive.symbols import ROW


@dataclass(frozen=True, slots=True)
class Mask:
    """An interval of keys for each query.

    Attributes:
        name: what a person calls it, e.g. ``causal``.
        says: the convention in words, printed wherever the mask is used.
        row, column: names of the query and the key index.
        rows, columns: their extents.
        first, last: the interval's ends as expressions in ``ROW``; ``None`` is the first or the last key there is.
    """

    name: str
    says: str
    row: str
    column: str
    rows: sp.Expr
    columns: sp.Expr
    first: sp.Expr | None = None
    last: sp.Expr | None = None

    def begin(self, row: sp.Expr) -> sp.Expr:
        """The first key that *row* sees, at least 0."""
        return sp.Integer(0) if self.first is None else _clamp(self.first.xreplace({ROW: row}), self.columns)

    def end(self, row: sp.Expr) -> sp.Expr:
        """One past the last key that *row* sees, at most ``columns``."""
        return self.columns if self.last is None else _clamp(self.last.xreplace({ROW: row}) + 1, self.columns)

    @property
    def pairs(self) -> sp.Expr:
        """How many (query, key) pairs it keeps."""
        return self._total(self.last, 1, self.rows * self.columns) - self._total(self.first, 0, sp.Integer(0))

    def _total(self, bound: sp.Expr | None, past: int, otherwise: sp.Expr) -> sp.Expr:
        """``clamp(bound + past)`` summed over all rows."""
        if bound is None:
            return otherwise
        slope = sp.diff(bound, ROW)
        if slope == 0:
            return self.rows * _clamp(bound + past, self.columns)
        start = sp.expand(bound.subs(ROW, 0)) + past
        return _clamped_prefix(start + self.rows - 1, self.columns) - _clamped_prefix(start - 1, self.columns)

    @property
    def keys_touched(self) -> sp.Expr:
        """How many keys some query sees; the intervals of neighbours overlap or touch."""
        return most(self.end(self.rows - 1) - self.begin(sp.Integer(0)), sp.Integer(0))

    @property
    def rows_touched(self) -> sp.Expr:
        """How many queries see some key."""
        if self.first is None:
            return self.rows - self.rows_blind_above
        blind_below = _clamp(self.first.subs(ROW, self.rows - 1) - self.columns + 1, self.rows)
        return most(self.rows - self.rows_blind_above - blind_below, sp.Integer(0))

    @property
    def rows_blind_above(self) -> sp.Expr:
        """How many queries at the start see no key, since their last one would stand before key 0."""
        return sp.Integer(0) if self.last is None else _clamp(-self.last.subs(ROW, 0), self.rows)


def _clamp(x: sp.Expr, top: sp.Expr) -> sp.Expr:
    """*x* held between 0 and *top*."""
    return most(least(sp.expand(x), top), sp.Integer(0))


def _clamped_prefix(x: sp.Expr, top: sp.Expr) -> sp.Expr:
    """``sum_{t <= x} clamp(t, 0, top)``."""
    x = sp.expand(x)
    m = _clamp(x, top)
    return m * (m + 1) / 2 + top * most(x - top, sp.Integer(0))


def causal(rows: sp.Expr, columns: sp.Expr, *, align: str = "bottom-right", row: str = "q", column: str = "k") -> Mask:
    """Each query sees the keys up to its own position.

    Args:
        rows: number of queries.
        columns: number of keys.
        align: ``bottom-right`` puts the last query on the last key (a KV cache, FlashAttention from 2.1 on);
            ``top-left`` puts the first query on the first key (cuDNN, PyTorch's ``is_causal``).
        row: name of the query index.
        column: name of the key index.
    """
    offset = columns - rows if align == "bottom-right" else sp.Integer(0)
    short = "causal" if align == "bottom-right" else "causal-tl"
    last = sp.expand(ROW + offset)
    says = f"causal, {align}: query q sees keys 0..{'q + N_k - N_q' if align == 'bottom-right' else 'q'}"
    return Mask(short, says, row, column, rows, columns, last=last)

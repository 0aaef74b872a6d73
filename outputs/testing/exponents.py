"""With which power of each size a count grows: least squares on logarithms, with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from derive.exact import Number

TWO_SIGMA = 2.0
"""Standard errors on each side of a power: about 95 % where points scatter normally."""


@dataclass(frozen=True)
class Exponent:
    """The power of one size.

    Attributes:
        power: the slope of log count against log size.
        half: half the width of its interval; 0 where points leave no freedom to judge.
    """

    power: float
    half: float

    def __str__(self) -> str:
        return f"{round(self.power, 2) + 0.0:.2f} +- {self.half:.2f}"  # + 0.0: no minus before a zero


def exponents(sizes: Sequence[Mapping[str, Number]], counts: Sequence[Number]) -> dict[str, Exponent]:
    """The power of each size that varies.

    Args:
        sizes: one mapping a point, all with the same keys.
        counts: the count at each point; points where it is not positive are left out.

    Returns:
        Powers by key; of sizes that always vary together the first has the power of all, and the others none. Empty where
        there are too few points to tell the sizes apart.
    """
    import numpy as np

    kept = [(s, c) for s, c in zip(sizes, counts, strict=True) if c > 0 and all(v > 0 for v in s.values())]
    keys = [k for k in (kept[0][0] if kept else ()) if len({s[k] for s, _ in kept}) > 1]
    if not keys or len(kept) < len(keys) + 1:
        return {}
    logs = [[log(s[k]) for s, _ in kept] for k in keys]
    columns = np.ones((len(kept), 1))
    apart = []
    for key, column in zip(keys, logs, strict=True):
        wider = np.column_stack((columns, column))
        if np.linalg.matrix_rank(wider) == wider.shape[1]:
            columns = wider
            apart.append(key)
    wanted = np.array([log(c) for _, c in kept])
    found, *_ = np.linalg.lstsq(columns, wanted, rcond=None)
    freedom = len(kept) - len(found)
    residual = wanted - columns @ found
    variance = float(residual @ residual) / freedom if freedom else 0.0
    spread = np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)) * variance)
    return {k: Exponent(float(found[n]), TWO_SIGMA * float(spread[n])) for n, k in enumerate(apart, start=1)}

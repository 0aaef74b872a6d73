"""A function that is constant from one given position to the next: where the document of a packed token begins or ends."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import sympy as sp


class Steps(sp.Function):  # type: ignore[misc]
    """``Steps(x, starts, values)``: the value that belongs to the last start that is at most x; starts and values rise.

    ``starts[0]`` is 0, and a negative x has the first value.
    """

    nargs = 3
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, x: Any, starts: Any, values: Any) -> Any:
        """A number once *x* is one, or where there is one step only."""
        if len(values) == 1:
            return values[0]
        if x.is_Integer:
            return values[max(0, bisect_right([int(s) for s in starts], int(x)) - 1)]
        return None

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Each start with its value."""
        return [(int(s), int(v)) for s, v in zip(self.args[1], self.args[2], strict=True)]

    def _sympystr(self, printer: Any) -> str:
        """As cases, which SymPy reads back."""
        x = printer._print(self.args[0])
        ends = [str(start) for start, _ in self.runs[1:]]
        cases = [f"({v}, {x} < {end})" for (_, v), end in zip(self.runs[:-1], ends, strict=True)]
        return f"Piecewise({', '.join(cases)}, ({self.runs[-1][1]}, True))"

    def _latex(self, printer: Any, **_: Any) -> str:
        """By name alone: the list stands beside the formula."""
        return rf"\operatorname{{steps}}\left({printer._print(self.args[0])}\right)"


def steps(x: sp.Expr, starts: list[int], values: list[int]) -> sp.Expr:
    """The step function of *x* with plain numbers."""
    return Steps(x, sp.Tuple(*starts), sp.Tuple(*values))

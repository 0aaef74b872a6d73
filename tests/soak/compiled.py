"""Closed forms as one Python function: the expressions that ``derive code`` prints, compiled once and run at many sizes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import gcd
from typing import Any

import sympy as sp

from derive.substitution import free
from outputs.python_form import HELPERS, identifier, python_form

Moved = dict[str, tuple[int, int]]
_SCOPE: dict[str, Any] = {"Fraction": Fraction, "gcd": gcd}
exec(compile(f"from __future__ import annotations\n{HELPERS}", "<helpers>", "exec"), _SCOPE)


class Compiled:
    """Amounts by name, all evaluated at once; integers and fractions, so nothing rounds and nothing overflows."""

    def __init__(self, amounts: Mapping[str, sp.Basic]) -> None:
        self.names = tuple(amounts)
        symbols = sorted({s.name for a in amounts.values() for s in free(a)})
        different = tuple(dict.fromkeys(amounts.values()))
        self._symbols = tuple(symbols)
        self._place = tuple(different.index(a) for a in amounts.values())
        body = ", ".join(map(python_form, different))
        scope = dict(_SCOPE)
        exec(
            compile(f"def amounts({', '.join(map(identifier, symbols))}):\n    return [{body}]", "<forms>", "exec"),
            scope,
        )
        self._function = scope["amounts"]

    def __call__(self, numbers: Mapping[str, int | Fraction]) -> dict[str, int | Fraction]:
        """The value of each amount at *numbers*."""
        found = self._function(*(numbers[name] for name in self._symbols))
        return {name: found[place] for name, place in zip(self.names, self._place, strict=True)}

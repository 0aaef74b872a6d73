"""Iverson's bracket ``[a = b]``: 1 where two whole numbers are equal, 0 elsewhere.

Source: Graham, Knuth & Patashnik, Concrete Mathematics, section 2.2.
"""

from __future__ import annotations

from typing import Any

import sympy as sp


class Same(sp.Function):  # type: ignore[misc]
    """``Same(a, b)``: 1 where *a* is *b*, else 0; SymPy's own delta asks for the sign of their difference, at length."""

    nargs = 2
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, a: Any, b: Any) -> Any:
        """A number once both are numbers, or where they are one expression."""
        if a == b:
            return sp.Integer(1)
        return sp.Integer(0) if a.is_Number and b.is_Number else None

    def _sympystr(self, printer: Any) -> str:
        """As SymPy's own, which SymPy reads back."""
        return f"KroneckerDelta({', '.join(map(printer._print, self.args))})"

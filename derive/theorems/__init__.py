"""Lower bounds proved elsewhere, as data in ``lower_bounds.toml``; nothing here is derived."""

from derive.theorems.theorem import Theorem, speaks_of, theorems

__all__ = ["Theorem", "speaks_of", "theorems"]

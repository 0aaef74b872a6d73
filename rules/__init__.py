"""Rewrites, one idea a file, each with precondition, proof, effect and reference; and the derivations that chain them."""

from __future__ import annotations

from rules.derivations import names, plan

__all__ = ["names", "plan"]

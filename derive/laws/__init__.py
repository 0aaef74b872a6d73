"""Scaling laws: how a closed form grows with one of its symbols, proved where SymPy can, else checked on random numbers."""

from derive.laws.check import TRIALS, Known, checked
from derive.laws.law import Evidence, Law, Outcome, Regime
from derive.laws.numbers import POINTS
from derive.laws.prove import laws, proved, told_apart
from derive.laws.roles import Roles

__all__ = [
    "POINTS",
    "TRIALS",
    "Evidence",
    "Known",
    "Law",
    "Outcome",
    "Regime",
    "Roles",
    "checked",
    "laws",
    "proved",
    "told_apart",
]

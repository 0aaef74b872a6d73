"""Scaling laws: how a closed form grows with one of its symbols, proved where SymPy can, else checked on random numbers."""

from derive.laws.check import TRIALS, looked_for
from derive.laws.law import Evidence, Law, Open, Outcome, Regime
from derive.laws.line import Lines
from derive.laws.numbers import POINTS
from derive.laws.prove import laws, proved, told_apart
from derive.laws.roles import Roles

__all__ = [
    "POINTS",
    "TRIALS",
    "Evidence",
    "Law",
    "Lines",
    "Open",
    "Outcome",
    "Regime",
    "Roles",
    "laws",
    "looked_for",
    "proved",
    "told_apart",
]

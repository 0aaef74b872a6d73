"""Scaling laws: how a closed form grows with one of its symbols, proved where SymPy can, else checked on random numbers."""

from derive.laws.check import checked
from derive.laws.law import Evidence, Law, Outcome, Regime
from derive.laws.prove import laws, proved, told_apart
from derive.laws.roles import Roles

__all__ = ["Evidence", "Law", "Outcome", "Regime", "Roles", "checked", "laws", "proved", "told_apart"]

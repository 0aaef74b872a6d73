"""Growth: Theta classes over the best tiles, derived by linear programs in logarithms, with both certificates."""

from derive.growth.classes import Growth, Lead, growth
from derive.growth.expression import LeadingTerm, Theta, theta
from derive.growth.regimes import Regime, regimes

__all__ = ["Growth", "Lead", "LeadingTerm", "Regime", "Theta", "growth", "regimes", "theta"]

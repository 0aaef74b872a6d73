"""Growth: Theta classes over the best tiles, derived by linear programs in logarithms, with both certificates."""

from derive.growth.classes import Growth, Lead, growth
from derive.growth.regimes import Regime, regimes

__all__ = ["Growth", "Lead", "Regime", "growth", "regimes"]

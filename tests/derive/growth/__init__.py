"""Growth classes: linear programs in logarithms, their regions and their certificates."""

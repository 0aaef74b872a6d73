"""Laws that hold across the catalogue: one variant, mask or schedule is another in a limit."""

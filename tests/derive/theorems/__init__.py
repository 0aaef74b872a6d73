"""Published lower bounds as data."""

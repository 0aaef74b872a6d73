"""Measured counters beside the engine's: profiles read, readings of the model compared, gaps explained."""

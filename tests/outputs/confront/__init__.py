"""Profiles beside the engine."""

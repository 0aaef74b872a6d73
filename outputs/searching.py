"""How Hypothesis searches inside a program, not in a test: quietly, without a database, down to the smallest example."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, Verbosity, settings


def quietly(examples: int) -> settings:
    """Settings that try *examples* examples and shrink the first that fails."""
    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )

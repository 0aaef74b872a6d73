"""A derivation as JSON and back: every graph, loop nest and rule, to an equal object, each step taken again when it is read."""

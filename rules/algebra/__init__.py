"""Rules from graph to graph: they change what is computed on the way and keep every value."""

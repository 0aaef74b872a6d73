"""Rewrites, one idea a file, each with precondition, proof, effect and reference; and the derivations that chain them."""

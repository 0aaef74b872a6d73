"""A derivation as a part of a paper: notation, assumptions, proposition, proof, numbers and sources."""

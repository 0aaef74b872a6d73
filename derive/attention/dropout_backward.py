"""Attention with dropout's backward pass: the mask is made again from the seed, not read."""

from derive.attention import dropout
from derive.backward import backward

VARIANT = backward(dropout.VARIANT, name="dropout-backward", reference="Dao et al. 2022, arXiv:2205.14135, algorithm 4")

"""Sigmoid attention's backward pass: no row sum and no log-sum-exp are needed."""

from derive.attention import sigmoid
from derive.backward import backward

VARIANT = backward(
    sigmoid.VARIANT, name="sigmoid-backward", reference="Ramapuram et al. 2024, arXiv:2409.04431, appendix G"
)

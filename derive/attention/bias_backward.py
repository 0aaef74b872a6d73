"""Biased attention's backward pass: the gradient of a shared bias is summed over heads and sequences."""

from derive.attention import bias
from derive.backward import backward

VARIANT = backward(bias.VARIANT, name="bias-backward", reference="Raffel et al. 2020, arXiv:1910.10683, section 2.1")

"""Soft-capped attention's backward pass: the tanh is made again, not kept."""

from derive.attention import softcap
from derive.backward import backward

VARIANT = backward(softcap.VARIANT, name="softcap-backward", reference="Gemma Team 2024, arXiv:2408.00118, section 2")

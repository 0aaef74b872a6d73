"""Cross attention's backward pass: its gradients reach two sequences."""

from derive.attention import cross
from derive.backward import backward

VARIANT = backward(
    cross.VARIANT, name="cross-backward", reference="Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3"
)

"""Multi-head attention's backward pass."""

from derive.attention import mha
from derive.backward import backward

VARIANT = backward(mha.VARIANT, name="mha-backward", reference="Dao et al. 2022, arXiv:2205.14135, appendix B.2")

"""ALiBi's backward pass: its slopes are constants and get no gradient."""

from derive.attention import alibi
from derive.backward import backward

VARIANT = backward(alibi.VARIANT, name="alibi-backward", reference="Press et al. 2022, arXiv:2108.12409, section 3")

"""Linear attention's backward pass: without a softmax the scores enter the gradients as they are, and nothing else is saved."""

from derive.attention import linear
from derive.backward import backward

VARIANT = backward(
    linear.VARIANT, name="linear-backward", reference="Katharopoulos et al. 2020, arXiv:2006.16236, section 3.3.1"
)

"""Multi-head latent attention's backward pass: the latent gathers the gradients of the keys and values made of it."""

from derive.attention import mla
from derive.backward import backward

VARIANT = backward(mla.VARIANT, name="mla-backward", reference="DeepSeek-AI 2024, arXiv:2405.04434, section 2.1")

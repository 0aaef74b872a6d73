"""Cross attention: queries and keys come from two sequences, so N_q and N_k are independent."""

from dataclasses import replace

from derive.attention import mha

VARIANT = replace(
    mha.VARIANT,
    name="cross",
    says="cross attention: N_q queries attend to N_k keys of another sequence",
    reference="Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3",
    one_sequence=False,
)

"""Grouped-query attention's backward pass: dK and dV are summed over the query heads of a group."""

from derive.attention import gqa
from derive.backward import backward

VARIANT = backward(
    gqa.VARIANT,
    name="gqa-backward",
    reference="Ainslie et al. 2023, arXiv:2305.13245; Dao 2023, arXiv:2307.08691, section 3.1.2",
)

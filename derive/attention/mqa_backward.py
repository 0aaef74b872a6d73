"""Multi-query attention's backward pass: dK and dV are summed over all query heads."""

from derive.attention import mqa
from derive.backward import backward

VARIANT = backward(
    mqa.VARIANT,
    name="mqa-backward",
    reference="Shazeer 2019, arXiv:1911.02150; Dao 2023, arXiv:2307.08691, section 3.1.2",
)

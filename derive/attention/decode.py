"""One decode step: a single query a head against a cache of N_k keys, in groups that share a key/value head."""

from dataclasses import replace

import sympy as sp

from derive.attention import gqa

VARIANT = replace(
    gqa.VARIANT,
    name="decode",
    says="one decode step: one new query a head against N_k cached keys; h query heads share hk key/value heads",
    extents={**gqa.VARIANT.extents, "q": sp.Integer(1)},
    reference="Shazeer 2019, arXiv:1911.02150, section 2.4",
)

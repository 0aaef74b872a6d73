"""Tensor parallelism: each device holds h/R heads throughout; a key/value head lies on several where there are fewer."""

from rules.scheme import Scheme

SCHEME = Scheme(
    name="tensor-parallel",
    says="each device has h/R query heads and their key/value heads from the start; the sum after the output projection "
    "is outside attention and not counted",
    reference="Shoeybi et al. 2019, arXiv:1909.08053, section 3",
    deals="heads",
    sharded=False,
)

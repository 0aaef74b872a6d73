"""Ring attention with an early and a late chunk on each device, which balances a causal mask."""

from derive.parallel.shards import Shards
from rules.scheme import Scheme

SCHEME = Scheme(
    name="ring-zigzag",
    says="the ring with chunks r and 2R-1-r of 2R on device r: an early and a late one, so that causal work is even",
    reference="Llama Team 2024, arXiv:2407.21783, section 3.3.2; github.com/zhuzilin/ring-flash-attention/issues/2",
    deals="tokens",
    streams=True,
    shards=Shards(zigzag=True),
)

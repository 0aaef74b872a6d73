"""Ring attention: each device keeps its queries, and the shards of K and V go round."""

from rules.scheme import Scheme

SCHEME = Scheme(
    name="ring",
    says="each device keeps N/R queries; shards of N/R keys go round the ring, one step each, while it works",
    reference="Liu et al. 2023, arXiv:2310.01889, section 3",
    deals="tokens",
    streams=True,
)
